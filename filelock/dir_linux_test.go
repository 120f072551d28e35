package filelock

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/servers"
)

func TestNetworkFileSystemIsRefused(t *testing.T) {
	dir := t.TempDir()
	if kind := network(dir); kind != "" {
		t.Fatalf("%s counts as %s", dir, kind)
	}
	defer func(real func(string) string) { network = real }(network)
	network = func(string) string { return "made-up" }
	if err := in(t, dir, nil).fails(exclusive("key")); !strings.Contains(err.Error(), "made-up") || !strings.Contains(err.Error(), "network=allow") {
		t.Errorf("it is refused with %v", err)
	}
	u := in(t, dir, &Options{AllowNetwork: true})
	u.granted(exclusive("key"))
	u.watch(waiting(exclusive("key")))
	if u.watcher.events != nil {
		t.Error("it listens to events, which other hosts do not cause")
	}
	_, err := driver.Open(t.Context(), "file://"+dir)
	if err == nil || !strings.Contains(err.Error(), "made-up") {
		t.Errorf("Open says %v", err)
	}
	opened(t, "file://"+dir+"?network=allow")
}

// Two users share locks, one of them root, which may set everything up wrong.
func TestTwoUsers(t *testing.T) {
	servers.NeedRoot(t, "act as another user")
	base, err := os.MkdirTemp("", "filelock")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	private := filepath.Join(base, "private")
	shared := in(t, filepath.Join(base, "shared"), &Options{Mode: 0o666})
	shared.granted(exclusive("key"))
	shared.must(os.Chmod(base, 0o755), os.Mkdir(private, 0o755))

	binary := copySelf(t, base)
	nobody := func(url, key string) string {
		cmd := exec.Command(binary, url, key)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		c := start(t, "try", cmd)
		said := c.says()
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
		return said
	}
	if got := nobody("file://"+shared.dir+"?mode=0666", "key"); got != "refused" {
		t.Errorf("the other user is told %q of a key that is held, want refused", got)
	}
	if got := nobody("file://"+shared.dir+"?mode=0666", "another"); got != "granted" {
		t.Errorf("the other user is told %q of a free key, want granted", got)
	}
	shared.granted(exclusive("another")) // The file is the other user's, whose session has ended.
	if err := in(t, shared.dir, nil).fails(exclusive("another")); !strings.Contains(err.Error(), "belongs to user 65534") {
		t.Errorf("without a mode the file of another user is refused with %v", err)
	}
	shared.must(os.Chmod(shared.path("key"), 0o600))
	if got := nobody("file://"+shared.dir+"?mode=0666", "key"); !strings.Contains(got, "permission denied") || !strings.Contains(got, shared.path("key")) {
		t.Errorf("of a file that is private the other user is told %q", got)
	}
	if got := nobody("file://"+private, "key"); !strings.Contains(got, "write to directory") || !strings.Contains(got, private) {
		t.Errorf("of a directory that is not writable the other user is told %q", got)
	}
}

// copySelf puts this test's binary where other users can run it.
func copySelf(t *testing.T, dir string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(dir, "test")
	if err := os.WriteFile(copied, binary, 0o755); err != nil {
		t.Fatal(err)
	}
	return copied
}
