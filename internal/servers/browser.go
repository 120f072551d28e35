package servers

// Browser returns the path of a browser that can run without a display, for tests that
// look at pages. The browser takes the options of Chromium.
func Browser(tb TB) string {
	tb.Helper()
	return Installed(tb, "chromium", "chromium", "google-chrome")
}
