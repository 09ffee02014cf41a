"""What others learn from what a party sends: `attacks`, and the `audit` that runs them before anything is sent."""
