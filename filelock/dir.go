package filelock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-go/holdfast/internal/netfs"
	"github.com/holdfast-go/holdfast/internal/safefile"
)

// Options say who may share the locks of a directory. The zero value means the processes of
// one user on one host.
type Options struct {
	// Mode is the permissions of the lock files, whatever the umask: 0600, 0660 or 0666. 0
	// means 0600. With a wider mode than 0600, files of other users are accepted, and a
	// missing directory is created wider too.
	Mode fs.FileMode

	// AllowNetwork accepts a directory on a network file system.
	AllowNetwork bool

	// Clock returns the wall time. Default: time.Now. No lease depends on Clock. Tokens
	// are the microseconds of Clock, or larger, since they always grow. Clock also tells
	// since when a key has been held.
	Clock func() time.Time
}

// advise adds the remedy to the refusal of a file.
func advise(err error) error {
	if owner := (*safefile.OwnerError)(nil); errors.As(err, &owner) {
		return fmt.Errorf("%w; to share locks between users open the store with a wider mode, such as mode=0660", err)
	}
	return err
}

const private fs.FileMode = 0o600

// checkMode refuses permissions unfit for a lock file.
func checkMode(mode fs.FileMode) error {
	if mode != private && mode != 0o660 && mode != 0o666 {
		return permanent{fmt.Errorf("mode %#o is not the mode of a lock file: want 0600, 0660 or 0666", uint32(mode))}
	}
	return nil
}

// network returns the kind of network file system of a directory, if any. A test replaces
// network.
var network = netfs.Kind

// prepareDir makes the directory of a store if it is missing, and refuses a directory in
// which locks would not be safe. It also returns the kind of network file system of the
// directory, "" if local.
func prepareDir(dir string, opts Options) (info os.FileInfo, kind string, err error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, "", err
	}
	if err := makeDir(dir, opts.Mode); err != nil {
		return nil, "", err
	}
	info, err = os.Stat(dir)
	if err != nil {
		return nil, "", err
	}
	if !info.IsDir() {
		return nil, "", permanent{fmt.Errorf("%s is not a directory", dir)}
	}
	if safefile.Exposed(info) {
		return nil, "", permanent{fmt.Errorf("everybody may remove files from %s: use a private directory, or set its sticky bit (chmod +t)", dir)}
	}
	kind = network(dir)
	if kind != "" && !opts.AllowNetwork {
		return nil, "", permanent{fmt.Errorf("%s is on a network file system (%s), where locks are only as good as its server's: use a local directory, or accept that with network=allow", dir, kind)}
	}
	return info, kind, writable(dir)
}

// makeDir makes a directory for the users that mode includes. The umask does not count, but
// an existing directory keeps its permissions.
func makeDir(dir string, mode fs.FileMode) error {
	perm := fs.FileMode(0o700)
	if mode&0o060 != 0 {
		perm |= mode&0o060 | 0o010 | fs.ModeSetgid // files of all members belong to the group
	}
	if mode&0o006 != 0 {
		perm |= mode&0o006 | 0o001 | fs.ModeSticky
	}
	err := os.Mkdir(dir, perm.Perm())
	if err == nil && perm != 0o700 {
		return os.Chmod(dir, perm)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}
