package servers

import (
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// A template is the data folder of a server that has never run. A server takes longer to
// make a data folder than most tests run. So a template is made once per machine and
// copied.
type template struct {
	program string   // a change of this file needs a new template
	terms   []string // further terms that decide the content
	owner   *account
	make    func(data string) error
}

// fill creates a data folder.
func (t template) fill(data string) error {
	kept, err := t.place()
	if err != nil {
		return t.make(data) // without a cache folder, there is no template
	}
	if _, err := os.Stat(kept); err == nil {
		return copyTree(kept, data, t.owner)
	}
	if err := t.make(data); err != nil {
		return err
	}
	keep(data, kept)
	return nil
}

// place returns the path of the template in the cache.
func (t template) place() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	info, err := os.Stat(t.program)
	if err != nil {
		return "", err
	}
	made := fmt.Sprintf("%q %d %v %q", t.program, info.Size(), info.ModTime(), t.terms)
	return filepath.Join(cache, "holdfast-servers", fmt.Sprintf("%x", sha256.Sum256([]byte(made)))), nil
}

// keep copies a data folder to the cache, if the cache can be written and has room.
// Several processes may keep the same template: after the rename, only complete templates
// are visible.
func keep(data, kept string) {
	folder := filepath.Dir(kept)
	if os.MkdirAll(folder, 0o700) != nil {
		return
	}
	part, err := os.MkdirTemp(folder, "part")
	if err != nil {
		return
	}
	defer os.RemoveAll(part)
	if copyTree(data, filepath.Join(part, "data"), nil) == nil {
		_ = os.Rename(filepath.Join(part, "data"), kept) // fails if another process was first
	}
}

// copyTree copies folders and files. The copies belong to owner, if it is not nil, and
// only their owner may read them.
func copyTree(from, to string, owner *account) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, relative)
		if entry.IsDir() {
			err = os.Mkdir(target, 0o700)
		} else {
			err = copyFile(path, target)
		}
		if err == nil && owner != nil {
			err = os.Chown(target, owner.uid, owner.gid)
		}
		return err
	})
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(target, source); err != nil {
		target.Close()
		return err
	}
	return target.Close()
}
