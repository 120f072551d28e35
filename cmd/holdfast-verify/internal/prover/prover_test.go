package prover

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The output and the exit code of a program have to fit together.
func TestVerify(t *testing.T) {
	const sound, broken = `{"violations": {"tokens": 0}}`, `{"violations": {"tokens": 2}}`
	const idle, dead = `{"invalid": "few locks", "grants": 1}`, `{"invalid": "no locks"}`
	for _, c := range []struct{ out, end, want string }{
		{sound, "0", ""},
		{broken, "1", ""},
		{idle, "77", ""},
		{idle, "1", "nothing is proved"},
		{dead, "1", ""},
		{dead, "77", "nothing was granted"},
		{sound, "2", "exit status 2"},
		{broken, "0", "broken 2 times"},
		{"no server", "1", "exit status 1"},
		{"", "0", "unexpected end of JSON"},
	} {
		path := filepath.Join(t.TempDir(), "holdfast")
		script := "#!/bin/sh\necho '" + c.out + "'\nexit " + c.end + "\n"
		if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		r, err := Program(path).Verify(t.Context())
		switch {
		case (err == nil) != (c.want == ""), err != nil && !strings.Contains(err.Error(), c.want):
			t.Errorf("%q and status %s: %v, want %q", c.out, c.end, err, c.want)
		case (err == nil) != (r != nil):
			t.Errorf("%q and status %s: %v, %v", c.out, c.end, r, err)
		}
	}
}

func TestVerifyIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if _, err := Program("/bin/true").Verify(ctx); !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
}
