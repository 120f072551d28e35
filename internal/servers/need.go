package servers

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Lacking ends a test that cannot run here, and reports why. Nobody sees a test that is left
// out in CI, so with HOLDFAST_TEST_ALL the test fails.
func Lacking(tb TB, format string, args ...any) {
	tb.Helper()
	if os.Getenv("HOLDFAST_TEST_ALL") != "" {
		tb.Fatalf(format, args...)
	}
	tb.Skipf(format, args...)
}

// NeedRoot skips a test that only root can run. what completes "only root can". With
// HOLDFAST_TEST_ALL, as in CI, the test fails.
func NeedRoot(tb TB, what string) {
	tb.Helper()
	if os.Geteuid() != 0 {
		Lacking(tb, "only root can %s: run the test as root", what)
	}
}

// NeedRedis7 is TooOld for a test that needs Redis 7, or Valkey, for several servers, or for users
// with rights to channels. Other tests run with older servers, too.
func NeedRedis7(tb TB) {
	tb.Helper()
	text, err := query(exec.Command(redisBinary(tb), "--version"), "")
	if err == nil && strings.Contains(text, " v=6.") {
		TooOld(tb, "the test needs Redis 7, not "+text, "HOLDFAST_REDIS")
	}
}

// oldestNodeJS is the oldest Node.js that runs dynalite and azurite, as in scripts/servers.
const oldestNodeJS = 20

// nodeJS returns the path of Node.js.
func nodeJS(tb TB) string {
	tb.Helper()
	path := Installed(tb, "nodejs", "node")
	text, err := query(exec.Command(path, "--version"), "")
	if err != nil {
		tb.Fatalf("node: %v", err)
	}
	var major int
	if _, err := fmt.Sscanf(text, "v%d.", &major); err != nil || major < oldestNodeJS {
		TooOld(tb, fmt.Sprintf("dynalite and azurite need Node.js %d or later, and %s is %s", oldestNodeJS, path, text))
	}
	return path
}

// TooOld skips a test that needs a newer server. Without the variables, nobody has chosen the old
// server. So with HOLDFAST_TEST_ALL, an installed server that is too old is a failure, as a
// missing server is.
func TooOld(tb TB, text string, variables ...string) {
	tb.Helper()
	for _, variable := range variables {
		if os.Getenv(variable) != "" {
			tb.Skipf("%s, which %s has chosen", text, variable)
		}
	}
	Lacking(tb, "%s", text)
}
