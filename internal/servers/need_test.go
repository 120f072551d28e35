package servers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// With HOLDFAST_TEST_ALL, a server that is too old is a failure, unless somebody has chosen the
// server.
func TestTooOld(t *testing.T) {
	for _, test := range []struct {
		all, chosen string
		skipped     bool
	}{{"", "", true}, {"1", "", false}, {"", "old", true}, {"1", "old", true}} {
		t.Setenv("HOLDFAST_TEST_ALL", test.all)
		t.Setenv("HOLDFAST_OTHER", "")
		t.Setenv("HOLDFAST_SERVER", test.chosen)
		v := failing(t, func(tb TB) { TooOld(tb, "the test needs version 7", "HOLDFAST_OTHER", "HOLDFAST_SERVER") })
		if v.skipped != test.skipped || !strings.Contains(v.fatal, "the test needs version 7") || strings.Contains(v.fatal, "HOLDFAST_SERVER") != (test.chosen != "") {
			t.Errorf("HOLDFAST_TEST_ALL=%s HOLDFAST_SERVER=%s: skipped %t with %q", test.all, test.chosen, v.skipped, v.fatal)
		}
	}
}

func TestOldNodeJS(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "node")
	t.Setenv("PATH", dir)
	t.Setenv("HOLDFAST_TEST_ALL", "")
	for version, old := range map[string]bool{"v18.20.4": true, "v20.0.0": false, "v9.11.2": true, "v100.1.0": false, "20": true} {
		if err := os.WriteFile(path, []byte("#!/bin/sh\necho "+version+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		if !old {
			nodeJS(t)
			continue
		}
		v := failing(t, func(tb TB) { nodeJS(tb) })
		if !v.skipped || !strings.Contains(v.fatal, "need Node.js 20 or later, and "+path+" is "+version) {
			t.Errorf("%s: skipped %t with %q", version, v.skipped, v.fatal)
		}
	}
}
