"""The pages in a real browser: nothing from outside, nothing cut off, in every size and mode."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from armillary import figures
from armillary.method import Method, Paper
from armillary.report import gallery
from armillary.run import Common, Run

CARD = Method("armillary", "t", Paper("T", (), "V", 2026), "m:demo", "m:CLAIMS")
HOSTILE = "<script>document.title='run'</script><img src=/x.png onerror=\"document.title='run'\">"
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}

# Contrast of each piece of text with what lies behind it, by the rule of WCAG 2; the lowest.
CONTRAST = """() => {
  const channels = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = (color) => channels(color).slice(0, 3)
    .map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (element) => {
    for (; element; element = element.parentElement) {
      const color = getComputedStyle(element).backgroundColor;
      if ((channels(color)[3] ?? 1) > 0) return color;
    }
    return 'rgb(255, 255, 255)';
  };
  let worst = [21, ''];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; node = texts.nextNode();) {
    if (!node.data.trim() || !node.parentElement.checkVisibility()) continue;
    const own = getComputedStyle(node.parentElement).color;
    const pair = [own, ground(node.parentElement)].map(light);
    const ratio = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
    if (ratio < worst[0]) worst = [ratio, node.data];
  }
  return worst;
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The system's own Chromium; nothing is installed for this test."""
    names = ("chromium", "chromium-browser", "google-chrome")
    executable = next(filter(None, map(shutil.which, names)), None)
    if executable is None:
        reason = f"no browser here: none of {', '.join(names)} is on the path"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        # As root, Chromium starts without its sandbox only; the pages are ours.
        opened = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two results as commands write them, and the gallery over both."""
    root = tmp_path_factory.mktemp("site")
    x = np.linspace(0, 1, 40)
    for command in ("demo", "reproduce"):
        params = {"text": HOSTILE, "unbroken": "x" * 300}
        with Run(CARD, command, Common(out=root / command, quiet=True), params) as run:
            run.report = True
            figure, ax = figures.new()
            figures.band(ax, x, x**2 - 0.1, x**2, x**2 + 0.1, "square")
            figures.label_axes(ax, "time (s)", "loss (nats)")
            run.figure(figure, "band", "A band. " + HOSTILE)
            wide, panels = figures.new(9, 3, columns=2)
            panels[0].bar(["a", "b"], [1, 2])
            panels[1].plot(x, rasterized=True)
            run.figure(wide, "wide")
            run.metrics |= {"loss": 0.25, "deep": {"number": 10**7, "long_name_" * 9: HOSTILE}}
            run.warn("look out " + HOSTILE)
            run.table([{f"column {i}": i / 7 for i in range(30)}] * 3, "A wide table")
            run.table([{"text": "word " * 60, "n": 1}], HOSTILE)
            if command == "reproduce":
                run.claims = [claim("holds", 1.4, 1.5), claim("does not hold", 0.2, 0.3)]
                run.claims += [claim("undecided", 0.9, 1.1), claim("not measured", None, None)]
    gallery([root / "demo", root / "reproduce"], root)
    return root


def claim(verdict: str, low: float | None, high: float | None) -> dict[str, object]:
    """A claim's record, as `reproduce` makes it."""
    check = {
        "name": "a ratio with a rather long name (of times)",
        "value": low,
        "low": low,
        "high": high,
        "at_least": 1.0,
        "at_most": None,
        "verdict": verdict,
        "note": "taken in turn",
    }
    return {
        "id": f"claim-{verdict}".replace(" ", "-"),
        "says": "It is faster. " * 5,
        "expected": "At least as fast.",
        "promised": False,
        "verdict": verdict,
        "checks": [check, check],
        "rows": [{"n": n, "x": n / 3} for n in range(4)],
        "notes": [HOSTILE],
        "seconds": 3.0,
    }


# Size changes the layout alone, and mode the colours: two views see all of both.
@pytest.mark.parametrize(("size", "mode"), [("desktop", "light"), ("phone", "dark")])
@pytest.mark.parametrize("name", ["demo/report.html", "reproduce/report.html", "index.html"])
def test_a_page_stands_alone(name: str, size: str, mode: str, site: Path, browser: Browser) -> None:
    width, height = SIZES[size]
    address = (site / name).as_uri()
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if mode == "dark" else "light",
    )
    page = context.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    try:
        page.goto(address)
        assert_looks_right(page, width, dark=mode == "dark")
        if name == "index.html":
            page.get_by_role("link").first.click()
            page.wait_for_url("**/demo/report.html")
            asked.remove((site / "demo" / "report.html").as_uri())
            assert page.get_by_role("heading", level=1).inner_text() == "armillary demo"
    finally:
        context.close()
    assert not said, "the console must stay silent"
    assert [url for url in asked if not url.startswith("data:")] == [address]


def assert_looks_right(page: Page, width: int, *, dark: bool) -> None:
    """What a reader must find, whatever the size of the window and the mode."""
    assert not page.title().startswith("run"), "text from a record was run"
    assert page.evaluate("document.documentElement.scrollWidth") <= width

    images = page.locator("img").all()
    assert len(images) == 2
    for image in images:
        assert image.is_visible()
        assert image.get_attribute("alt")
        assert image.evaluate("image => image.complete && image.naturalWidth") > 0
        box = image.bounding_box()
        assert box is not None
        assert 0 <= box["x"] <= box["x"] + box["width"] <= width
        assert min(box["width"], box["height"]) >= 100

    ground = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    brightness = [int(channel) for channel in ground[4:-1].split(",")]
    assert max(brightness) < 40 if dark else min(brightness) > 230
    for paper in page.locator(".paper").all():
        assert paper.evaluate("paper => getComputedStyle(paper).backgroundColor") == (
            "rgb(255, 255, 255)"
        ), "the figures are drawn on white"
    for summary in page.locator("summary").all():
        summary.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ratio, text = page.evaluate(CONTRAST)
    assert ratio >= 4.5, text

    # The wide table is reached by the keyboard, and scrolls within its box.
    for box in page.get_by_role("region").filter(has_text="column 29").all():
        box.focus()
        page.keyboard.press("ArrowRight")
        for _ in range(100):  # the policy of the page forbids Playwright's own way of waiting
            if box.evaluate("box => box.scrollLeft") > 0:
                break
            page.wait_for_timeout(20)
        else:
            pytest.fail("the wide table does not scroll")
