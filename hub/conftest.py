"""Loads the plugin of all tests of the repository, where they are run from this folder."""


def pytest_configure(config):
    if not config.pluginmanager.has_plugin("suite"):
        config.pluginmanager.import_plugin("suite")
