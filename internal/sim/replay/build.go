package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/holdfast-go/holdfast/internal/overlay"
)

// env makes a program repeatable. A garbage collection may begin at any time, so env turns
// the collector off.
var env = []string{"GOGC=off", "GOMAXPROCS=1"}

// build compiles the tests of a package with the edits, and with the files of the list
// extra. The build has no race detector, because the race detector has a different
// scheduler. The tag exact needs Go 1.26, for testing/cryptotest.
func build(ctx context.Context, pkg, program, extra string) error {
	sources, err := os.MkdirTemp("", "holdfast-replay-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(sources)
	list, err := write(ctx, sources)
	if err != nil {
		return err
	}
	if extra != "" {
		if err := merge(list, extra); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-tags=exact", "-overlay="+list, "-o", program, pkg)
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, said)
	}
	return nil
}

// write writes the edited files of the installed Go into a folder, and returns the list of
// the files.
func write(ctx context.Context, folder string) (list string, err error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	list, err = overlay.Write(folder, overlay.In(filepath.Join(strings.TrimSpace(string(out)), "src"), edits))
	if err != nil {
		return "", fmt.Errorf("the texts of this Go have moved, correct internal/sim/replay/edits.go: %w", err)
	}
	return list, nil
}

// merge adds the files of the list extra to a list.
func merge(list, extra string) error {
	var all, more struct{ Replace map[string]string }
	for path, to := range map[string]any{list: &all, extra: &more} {
		data, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(data, to)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	maps.Copy(all.Replace, more.Replace)
	data, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return os.WriteFile(list, data, 0o600)
}
