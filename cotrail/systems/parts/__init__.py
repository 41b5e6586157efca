"""Parts that systems share: settings and the steps that go with them, a topic each."""
