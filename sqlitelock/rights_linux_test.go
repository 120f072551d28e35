package sqlitelock_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/workers"
)

// TestLeastRights has root make the file, and another user lock in it, who may write to the file and
// its folder only. Without one of these rights the user is refused.
func TestLeastRights(t *testing.T) {
	t.Parallel()
	servers.NeedRoot(t, "act as another user")
	base := must.Get(os.MkdirTemp("", "sqlitelock")) // a folder of the test is root's alone
	t.Cleanup(func() { os.RemoveAll(base) })
	program := filepath.Join(base, "test")
	if err := errors.Join(
		os.Chmod(base, 0o755),
		os.WriteFile(program, must.Get(os.ReadFile(must.Get(os.Executable()))), 0o755),
	); err != nil {
		t.Fatal(err)
	}
	nobody := func(url string) *exec.Cmd {
		cmd := exec.Command(program, url, killTTL.String())
		cmd.Dir = base
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		return cmd
	}
	for name, test := range map[string]struct {
		folder, file os.FileMode
		refused      bool
	}{
		"both":   {0o777, 0o666, false},
		"folder": {0o777, 0o644, true},
		"file":   {0o755, 0o666, true},
	} {
		dir := filepath.Join(base, name)
		path := filepath.Join(dir, "locks.db")
		url := "sqlite://" + path
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		root := hire(t, url, killTTL)
		root.do(lock("made by root"))
		root.do(unlock("made by root"))
		if err := errors.Join(root.In.Close(), root.Wait(), os.Chmod(path, test.file), os.Chmod(dir, test.folder)); err != nil {
			t.Fatal(err)
		}
		if !test.refused {
			other := employed(t, workers.Run(t, nobody(url)))
			other.do(lock("key"))
			other.do(unlock("key"))
			continue
		}
		cmd := nobody(url)
		var complaint strings.Builder
		cmd.Stderr = &complaint
		other := workers.Run(t, cmd)
		var r report // missing if the worker could not open the file
		// A worker without rights may end before it reads.
		_ = json.NewEncoder(other.In).Encode(lock("key"))
		_ = other.In.Close()
		_ = json.NewDecoder(other.Out).Decode(&r)
		if err := other.Wait(); err == nil && r.Err == "" {
			t.Errorf("with only the %s writable, another user has locked", name)
		}
		t.Logf("with only the %s writable: %s%s", name, complaint.String(), r.Err)
	}
}
