package netfs

import (
	"strings"
	"syscall"
	"testing"
)

func TestKind(t *testing.T) {
	dir := t.TempDir()
	if kind := Kind(dir); kind != "" {
		t.Errorf("%s counts as %s", dir, kind)
	}
	if kind := Kind(dir + "/missing"); !strings.HasPrefix(kind, "unknown: ") {
		t.Errorf("a missing directory counts as %q", kind)
	}
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	networks[uint32(st.Type)] = "made-up" //nolint:unconvert // as in Kind
	defer delete(networks, uint32(st.Type))
	if kind := Kind(dir); kind != "made-up" {
		t.Errorf("a directory on a made-up file system counts as %q", kind)
	}
}
