package servers

import (
	"os"
	"os/exec"
	"path/filepath"
)

// Snapshot saves the data of a single server, and returns the file.
func (e *Etcd) Snapshot() (file string) {
	e.tb.Helper()
	file = filepath.Join(e.tb.TempDir(), "snapshot")
	if err := e.control("--endpoints="+address(e.port), "snapshot", "save", file); err != nil {
		e.tb.Fatalf("%v", err)
	}
	return file
}

// Restore kills a single server, and starts the server with the data of a snapshot at the
// same addresses. With a token, the cluster has a new id; without a token, the cluster
// keeps the id.
func (e *Etcd) Restore(snapshot, token string) {
	e.tb.Helper()
	args := []string{
		"snapshot", "restore", snapshot, "--data-dir=" + filepath.Join(e.dir, "data"), "--name=" + e.name,
		"--initial-cluster=" + e.name + "=" + e.peerURL(), "--initial-advertise-peer-urls=" + e.peerURL(),
	}
	if token != "" {
		args = append(args, "--initial-cluster-token="+token)
	}
	e.restart(func() error {
		if err := os.RemoveAll(filepath.Join(e.dir, "data")); err != nil {
			return err
		}
		return e.control(args...)
	})
	e.awaitLeader()
}

// control runs etcdctl.
func (e *Etcd) control(args ...string) error {
	cmd := exec.Command(Installed(e.tb, "etcd-client", "etcdctl"), args...)
	cmd.Env = append(os.Environ(), "ETCDCTL_API=3")
	_, err := query(cmd, "")
	return err
}
