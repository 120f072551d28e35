package servers

import (
	_ "embed"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

//go:embed preload/clock.c
var clockSource string

// A Clock is a TB whose servers have a separate wall clock, which can be set:
//
//	c := servers.StartClock(t)
//	r := servers.StartRedis(c)
//	c.Step(time.Hour)
//
// A Clock works for programs that are linked with the C library of a Linux system, such as
// Redis and PostgreSQL, but not for etcd. MariaDB aborts when the clock goes back.
type Clock struct {
	TB
	library string
	file    *os.File // holds the offset from the right time
}

// StartClock makes a clock that shows the right time. StartClock needs a C compiler; a
// test is skipped without one.
func StartClock(tb TB) *Clock {
	tb.Helper()
	compiler := Installed(tb, "gcc", "cc", "gcc")
	dir := tb.TempDir()
	c := &Clock{TB: tb, library: filepath.Join(dir, "clock.so")}
	cmd := exec.Command(compiler, "-shared", "-fPIC", "-O1", "-x", "c", "-o", c.library, "-")
	_, err := query(cmd, clockSource)
	if err == nil {
		c.file, err = os.Create(filepath.Join(dir, "offset"))
	}
	if err == nil {
		err = c.set(0)
	}
	if err == nil {
		err = c.publish()
	}
	if err != nil {
		tb.Fatalf("make a clock: %v", err)
	}
	tb.Cleanup(func() { c.file.Close() })
	return c
}

// publish lets servers that run as different users read the files.
func (c *Clock) publish() error {
	me := &account{os.Getuid(), os.Getgid()}
	for path, mode := range map[string]os.FileMode{c.library: 0o755, c.file.Name(): 0o644, filepath.Dir(c.library): 0o755} {
		if err := os.Chmod(path, mode); err != nil {
			return err
		}
		if err := me.own(path); err != nil {
			return err
		}
	}
	return nil
}

// Step sets the clock ahead of the right time by that much, or behind the right time if by
// is negative.
func (c *Clock) Step(by time.Duration) {
	c.Helper()
	if err := c.set(by); err != nil {
		c.Fatalf("set a clock: %v", err)
	}
}

func (c *Clock) set(by time.Duration) error {
	_, err := c.file.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(by)), 0)
	return err
}

// Environ returns extra environment variables of the servers.
func (c *Clock) Environ() []string {
	return []string{"LD_PRELOAD=" + c.library, "HOLDFAST_CLOCK=" + c.file.Name()}
}
