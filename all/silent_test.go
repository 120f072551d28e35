package all_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// TestOpenOfSilentServers connects to a server that accepts and says nothing. Open gives
// up long before its context ends, and names the server and what it did not do.
func TestOpenOfSilentServers(t *testing.T) {
	t.Parallel()
	addr := servers.StartStranger(t, func(conn net.Conn) {
		var b [1]byte
		for err := error(nil); err == nil; {
			_, err = conn.Read(b[:])
		}
	})
	keys := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(keys, []byte("[default]\naws_access_key_id = a\naws_secret_access_key = b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	azure := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(azure, []byte("AccountKey=bW9vbmxpZ2h0"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{
		"redis://" + addr, "rediss://" + addr, "redlock://?node=redis://" + addr + "&node=redis://" + addr + "/1" + "&node=redis://" + addr + "/2",
		"memcached://" + addr, "memcached://user:secret@" + addr,
		"mysql://user@" + addr + "/db", "mysql://user@" + addr + "/db?mode=session",
		"postgres://user@" + addr + "/db", "postgres://user@" + addr + "/db?mode=session",
		"etcd://" + addr, "etcd://user:secret@" + addr, "etcds://" + addr, "zk://" + addr,
		"s3://bucket?endpoint=http://" + addr + "&credentials=" + keys,
		"gs://bucket?endpoint=http://" + addr,
		"dynamodb://table?endpoint=http://" + addr + "&credentials=" + keys,
		"azblob://account/container?endpoint=http://" + addr + "&credentials=" + azure,
		"nats://" + addr, "nats://user:secret@" + addr, "natss://" + addr,
	} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			store, err := holdfast.Open(ctx, at, nil)
			t.Log(err)
			if err == nil {
				store.Close()
			}
			if err == nil || ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), addr) || !strings.Contains(err.Error(), "not answer") {
				t.Errorf("Open returned %v, want that the server does not answer", err)
			}
		})
	}
}
