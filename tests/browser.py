"""A page in a real browser: headless Chromium without a network. conftest.py has `chromium` and `open_page`."""

import shutil

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--disable-software-rasterizer",
    "--renderer-process-limit=1",
    "--disable-extensions",
    "--in-process-gpu",
]


class Pages:
    """Pages of one browser, each used for one visit after another: a new one costs a process."""

    def __init__(self, browser):
        self._browser, self._free = browser, {}

    def take(self, options):
        free = self._free.setdefault(repr(options), [])
        return free.pop() if free else self._browser.new_context(offline=True, **options).new_page()

    def give_back(self, page, options):
        if options.get("java_script_enabled", True):
            page.evaluate("localStorage.clear()")
        page.goto("about:blank")
        self._free[repr(options)].append(page)


class Visit:
    """A page that was opened, and everything that it did."""

    def __init__(self, pages, path, **options):
        self._pages, self._options = pages, options
        self.page = pages.take(options)
        self.requests, self.complaints, self.dialogs = [], [], []
        self._listeners = {
            "request": lambda request: self.requests.append(request.url),
            "console": lambda message: self.complaints.append(f"{message.type}: {message.text}"),
            "pageerror": lambda error: self.complaints.append(str(error)),
            "dialog": self._dialog,
        }
        for event, listener in self._listeners.items():
            self.page.on(event, listener)
        self.page.goto(path.as_uri())

    def close(self):
        for event, listener in self._listeners.items():
            self.page.remove_listener(event, listener)
        self._pages.give_back(self.page, self._options)

    def _dialog(self, dialog):
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def column(self, card, index):
        return self.page.locator(f"{card} tbody tr > :nth-child({index})").all_inner_texts()

    def facts(self):
        """The facts at the top of the page, by their names."""
        names, values = (self.page.locator(f".facts {tag}").all_inner_texts() for tag in ("dt", "dd"))
        return dict(zip(names, values, strict=True))

    def side_effects(self):
        """What it asked for besides itself, complained of, or said, and names in it that became elements."""
        elements = self.page.locator("main b, main i, main script").evaluate_all("all => all.map((e) => e.outerHTML)")
        return [*self.requests[1:], *self.complaints, *self.dialogs, *elements]


# What a reader would see as a fault of the layout, each as a line of text.
_FAULTS = """() => {
  const found = [], wide = document.documentElement.clientWidth;
  const seen = (e) => e.getClientRects().length > 0;
  const said = (e) => `${e.tagName} ${e.getAttribute("class") ?? ""} "${e.textContent.trim().slice(0, 40)}"`;
  for (const e of document.querySelectorAll("body *")) {
    if (!seen(e)) continue;
    const box = e.getBoundingClientRect(), style = getComputedStyle(e);
    const holder = e.closest(".scroll, pre, nav > div");
    const scrolls = holder && getComputedStyle(holder).overflowX === "auto";  // on paper nothing does
    if (!scrolls && (box.right > wide + 0.5 || box.left < -0.5)) found.push(`beyond the screen: ${said(e)}`);
    if (scrolls || e.closest("svg") || !e.clientWidth || e.scrollWidth <= e.clientWidth + 1) continue;
    found.push(`${style.overflowX === "visible" ? "beyond its box" : "clipped"}: ${said(e)}`);
  }
  for (const svg of document.querySelectorAll("figure svg")) {
    if (!seen(svg)) continue;
    const frame = svg.getBoundingClientRect(), where = svg.parentElement.dataset.name;
    const texts = [...svg.querySelectorAll("text")].map((t) => [t, t.getBoundingClientRect()]);
    texts.forEach(([t, a], i) => {
      const out = [frame.left - a.left, a.right - frame.right, frame.top - a.top, a.bottom - frame.bottom];
      if (Math.max(...out) > 1) found.push(`cut off in ${where}: ${said(t)}`);
      if (a.height < 8.5) found.push(`too small in ${where}: ${said(t)}`);
      for (const [u, b] of texts.slice(i + 1)) {
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (across > 1 && down > 3) found.push(`on each other in ${where}: ${said(t)} and ${said(u)}`);
      }
    });
  }
  return found;
}"""


def faults(page):
    """What lies beyond the screen or is clipped, and texts in pictures that are cut off, tiny or on each other."""
    return page.evaluate(_FAULTS)


def unfolded_faults(page):
    """The faults with everything unfolded, and that the page must be scrolled sideways."""
    page.evaluate("() => document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    wide = page.evaluate("() => document.documentElement.scrollWidth")
    return [*faults(page), *([] if wide == page.viewport_size["width"] else [f"{wide} pixels wide"])]


def faults_on_paper(page):
    """The faults of the page when it is printed."""
    page.emulate_media(media="print")
    found = faults(page)
    page.emulate_media(media="screen")  # the page is used again
    return found


def contrast(first, second):
    """The contrast of two colors by WCAG; text needs 4.5."""

    def luminance(color):
        digits = color[1:] if len(color) == 7 else "".join(2 * digit for digit in color[1:])
        parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)
