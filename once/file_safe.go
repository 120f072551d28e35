package once

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/holdfast-go/holdfast/internal/netfs"
	"github.com/holdfast-go/holdfast/internal/safefile"
)

// makeFolder creates a missing folder for the current user only, with its parents.
func makeFolder(dir string) error {
	_, err := os.Lstat(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return syncDir(filepath.Dir(dir))
}

// safeFolder returns the path of a folder, with links resolved. A folder, or a link to
// a folder, is refused if a different user could add, change or replace records.
func safeFolder(dir string, allowNetwork bool) (string, error) {
	link, err := os.Lstat(dir)
	if err == nil {
		err = owned(dir, link)
	}
	if err != nil {
		return "", err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", err
	}
	if dir, err = filepath.Abs(dir); err != nil { // The process may change its working directory.
		return "", err
	}
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return "", err
	case !info.IsDir():
		return "", fmt.Errorf("%s is not a folder", dir)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0:
		return "", fmt.Errorf("others may write to %s: use a folder of this user alone (chmod go-w)", dir)
	}
	if err := owned(dir, info); err != nil {
		return "", err
	}
	for child, parent := dir, filepath.Dir(dir); parent != child; child, parent = parent, filepath.Dir(parent) {
		info, err := os.Stat(parent)
		if err != nil {
			return "", err
		}
		if err := safefile.Owner(parent, info); err != nil {
			return "", fmt.Errorf("%w, who may replace the folder %s: use a folder of this user below folders of this user or root", err, dir)
		}
		if safefile.Exposed(info) {
			return "", fmt.Errorf("every user may replace the contents of %s, and so the folder %s: use a different folder, or set the sticky bit of %[1]s (chmod +t)", parent, dir)
		}
	}
	if kind := netfs.Kind(dir); kind != "" && !allowNetwork {
		return "", fmt.Errorf("%s is on a network file system (%s), where locks are only as good as its server's: use a local folder, or accept that with File.AllowNetwork", dir, kind)
	}
	return dir, nil
}

// owned refuses a folder, or a link to a folder, of a different user.
func owned(dir string, info fs.FileInfo) error {
	if err := safefile.Owner(dir, info); err != nil {
		return fmt.Errorf("%w: use a folder of this user alone", err)
	}
	return nil
}

// safePart refuses the folder of a part if a different user may have created it.
func safePart(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case info.Mode()&fs.ModeSymlink != 0:
		return &fs.PathError{Op: "open", Path: dir, Err: safefile.ErrSymlink}
	}
	return owned(dir, info)
}

// openFile opens a file that no other user can have created.
func openFile(path string, write bool) (*os.File, error) {
	h, err := safefile.Open(path, write)
	if err != nil {
		return nil, err
	}
	if _, err := h.Inspect(path, false); err != nil {
		h.Close()
		if owner := (*safefile.OwnerError)(nil); errors.As(err, &owner) {
			err = fmt.Errorf("%w, and records are those of one user; remove it if nobody needs it", err)
		}
		return nil, err
	}
	return os.NewFile(uintptr(h), path), nil
}

// createFile creates a file for the current user only. The file must not exist.
func createFile(path string) (*os.File, error) {
	h, err := safefile.Create(path, 0o600)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(h), path), nil
}
