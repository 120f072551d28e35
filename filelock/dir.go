package filelock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/holdfast-go/holdfast/internal/netfs"
)

// Options say who may share the locks of a directory. The zero value means
// the processes of one user on one host.
type Options struct {
	// Mode is the permissions of the lock files, whatever the umask: 0600,
	// 0660 or 0666. 0 means 0600. With a wider mode than 0600, files of other
	// users are accepted, and a missing directory is made wider too.
	Mode fs.FileMode

	// AllowNetwork accepts a directory on a network file system.
	AllowNetwork bool

	// Clock tells the wall time. Default: time.Now. No lease depends on it: tokens
	// are of its microseconds, but larger than all before, and others are told by
	// it since when a key has been held.
	Clock func() time.Time
}

// Reasons for which a file is not taken as a lock file.
var (
	errSymlink   = errors.New("it is a symbolic link, which a lock file never is; remove it if nobody needs it")
	errHardLink  = errors.New("it has a second name (a hard link), which a lock file never has; remove it if nobody needs it")
	errIrregular = errors.New("it is not a regular file, as a lock file always is; remove it if nobody needs it")
)

func foreignOwner(uid int) error {
	return fmt.Errorf("it belongs to user %d; to share locks between users open the store with a wider mode, such as mode=0660", uid)
}

const private fs.FileMode = 0o600

// checkMode refuses permissions that a lock file cannot live with.
func checkMode(mode fs.FileMode) error {
	if mode != private && mode != 0o660 && mode != 0o666 {
		return fmt.Errorf("mode %#o is not the mode of a lock file: want 0600, 0660 or 0666", uint32(mode))
	}
	return nil
}

// network tells the kind of network file system that a directory is on, if any.
// A test has another.
var network = netfs.Kind

// prepareDir makes the directory of a store if it is missing, and refuses one
// in which locks would not be safe. It also returns the kind of network file
// system that it is on, nothing if it is local.
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
		return nil, "", fmt.Errorf("%s is not a directory", dir)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o002 != 0 && info.Mode()&fs.ModeSticky == 0 {
		return nil, "", fmt.Errorf("everybody may remove files from %s: use a private directory, or set its sticky bit (chmod +t)", dir)
	}
	kind = network(dir)
	if kind != "" && !opts.AllowNetwork {
		return nil, "", fmt.Errorf("%s is on a network file system (%s), where locks are only as good as its server's: use a local directory, or accept that with network=allow", dir, kind)
	}
	return info, kind, writable(dir)
}

// makeDir makes a directory whose files are for those for whom mode is. The
// umask does not count, but a directory that was there keeps what it has.
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
