package leases

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/asks"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// A server whose disk is full says so, to whoever wants a key that it does not
// know, and serves again when there is room.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	t.Run(mariadb.name, func(t *testing.T) {
		t.Parallel()
		// 12 MB is what the file has when it is made; a smaller or larger one is refused.
		s := mariadb.start(t, "innodb_data_file_path = ibdata1:12M", "innodb_file_per_table = 0", mariadb.nosync)
		at := create(t, s.URL())
		s.Must("CREATE TABLE filler (x longtext)")
		fill := func() {
			_, err := s.Do("INSERT INTO filler SELECT repeat('x', 1 << 18) FROM seq_1_to_4")
			for err == nil {
				_, err = s.Do("INSERT INTO filler SELECT repeat('x', 1 << 18) FROM seq_1_to_4")
			}
			says(t, err, "is full")
		}
		full(t, at, "until there is more", fill, nil) // It cannot even drop a table then.
	})
	t.Run(postgres.name, func(t *testing.T) {
		t.Parallel()
		s := postgres.start(t, postgres.nosync)
		at := create(t, s.URL())
		pid := strings.Fields(s.Must("SELECT pg_read_file('postmaster.pid')"))[0]
		// No file may grow: those of the log have their size already.
		limit := func(bytes string) {
			cmd := exec.Command("prlimit", "--pid="+pid, "--fsize="+bytes+":unlimited")
			info, err := os.Stat("/proc/" + pid)
			succeed(t, err)
			owner := info.Sys().(*syscall.Stat_t)
			if os.Getuid() == 0 {
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}}
			}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("prlimit: %v: %s", err, out)
			}
		}
		const most = 17 << 20
		fill := func() {
			s.Must(fmt.Sprintf("INSERT INTO %s SELECT repeat('f', 500) || n, 1, 1, 0, '', 0, 0, '{}' FROM generate_series(1, %d) n", table(at), most/2/600))
			limit(fmt.Sprint(most))
			s.Must("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'")
			_, err := s.Do(fmt.Sprintf("INSERT INTO %s SELECT repeat('g', 500) || n, 1, 1, 0, '', 0, 0, '{}' FROM generate_series(1, %d) n", table(at), most/500))
			says(t, err, "extend")
		}
		full(t, at, "extend", fill, func() {
			limit("unlimited")
			s.Must("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'")
		})
	})
}

// full fills a server's disk while a lock is held, and makes room again, if it
// can.
func full(t *testing.T, at, words string, fill, drain func()) {
	t.Helper()
	s := open(t, at)
	held := exclusive("held", "a")
	held.TTL = time.Hour // A slow machine takes long to fill a disk.
	g, err := s.Acquire(t.Context(), held)
	if err != nil || !g.OK {
		t.Fatalf("%+v, %v", g, err)
	}
	fill()
	i := 0
	servers.Until(t, "the end of the room", func() bool {
		i++
		c := exclusive(fmt.Sprint(strings.Repeat("k", 500), i), fmt.Sprint(i))
		c.Note = strings.Repeat("n", 1000)
		_, err = s.Acquire(t.Context(), c)
		return err != nil && !strings.Contains(err.Error(), "terminating connection") // which is how fill had it obeyed
	})
	says(t, err, words)
	if errors.Is(err, driver.ErrInvalid) || errors.Is(err, driver.ErrLost) {
		t.Errorf("%v is not tried again", err)
	}
	if drain == nil {
		return
	}
	drain()
	servers.Until(t, "the server to have room", func() bool {
		g, err := s.Acquire(t.Context(), exclusive("new", "b"))
		return err == nil && g.OK
	})
	succeed(t, s.Renew(t.Context(), asks.Renewals(held))[0])
	succeed(t, s.Release(t.Context(), asks.Releases(held))[0])
	again, err := s.Acquire(t.Context(), exclusive("held", "c"))
	if err != nil || again.Fence <= g.Fence {
		t.Errorf("then: %+v, %v; want a token above %d", again, err, g.Fence)
	}
}
