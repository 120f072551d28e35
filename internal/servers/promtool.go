package servers

// Promtool returns the path of the program that checks the rules of Prometheus.
func Promtool(tb TB) string {
	tb.Helper()
	return Installed(tb, "prometheus", "promtool")
}
