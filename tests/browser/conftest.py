"""A real browser, if there is one, and pages that must not complain."""

import importlib.util
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
from installed_chromium import ARGUMENTS, chromium_path

# In an environment without Playwright there is nothing to collect here.
collect_ignore_glob = [] if importlib.util.find_spec("playwright") else ["test_*.py"]


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import sync_playwright

    path = chromium_path()
    if path is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def new_page(browser):
    """Return a function that opens a page, in a window of its own or in one given.

    At the end, no page may have had an error, broken the content security policy, or
    asked for anything but what its own server has.
    """
    contexts, complaints = [], []

    def listen(page, address):
        host = urlsplit(address).netloc

        def asked(request):
            if urlsplit(request.url).netloc not in (host, ""):
                complaints.append(f"asked for {request.url}")

        def said(message):
            # Those are the faults that the tests bring about.
            if (
                message.type == "error"
                and "Failed to load resource" not in message.text
            ):
                complaints.append(message.text)

        page.on("request", asked)
        page.on("console", said)
        page.on("pageerror", lambda error: complaints.append(str(error)))

    def open_page(address, width=1280, height=800, context=None, **options):
        if context is None:
            size = {"width": width, "height": height}
            context = browser.new_context(
                viewport=size, reduced_motion="reduce", **options
            )
            contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        listen(page, address)
        page.goto(address)
        page.wait_for_selector("[role=option]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not complaints


@pytest.fixture
def serve():
    """Return a function that serves a made-up studio."""
    from fake_server import FakeServer, FakeStudio

    servers = []

    def start(material, **settings):
        server = FakeServer(FakeStudio(material, **settings))
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.stop()
