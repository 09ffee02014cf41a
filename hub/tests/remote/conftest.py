import pytest
from mail import Mail


@pytest.fixture
def mail(tmp_path):
    return Mail(tmp_path)
