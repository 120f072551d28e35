package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	gomod "golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// pack writes all modules at one version into a folder that the go command takes as a
// module proxy (https://go.dev/ref/mod#goproxy-protocol). pack uses the folders of the
// tree, committed or not.
func (t tree) pack(version, proxy string) error {
	all, err := t.modules()
	if err != nil {
		return err
	}
	for _, m := range all {
		if err := t.packModule(m, version, proxy); err != nil {
			return fmt.Errorf("pack %s: %w", m.path, err)
		}
	}
	return nil
}

func (t tree) packModule(m module, version, proxy string) (err error) {
	folder := filepath.Join(proxy, filepath.FromSlash(m.path), "@v")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	info, err := json.Marshal(map[string]any{"Version": version, "Time": time.Unix(0, 0).UTC()})
	if err != nil {
		return err
	}
	source := filepath.Join(t.dir, filepath.FromSlash(m.dir))
	requires, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{"list": []byte(version + "\n"), version + ".info": info, version + ".mod": requires} {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil {
			return err
		}
	}
	archive, err := os.Create(filepath.Join(folder, version+".zip"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, archive.Close()) }()
	return zip.CreateFromDir(archive, gomod.Version{Path: m.path, Version: version}, source)
}

// proxied returns an environment in which the go command gets modules from a proxy folder
// first, then from the module cache and the proxies of the user. The modules go into a
// separate cache, so that the cache of the user never has an unreleased version.
func proxied(proxy, cache string) ([]string, error) {
	out, err := run(".", "go", "env", "GOMODCACHE", "GOPROXY")
	if err != nil {
		return nil, err
	}
	theirs := strings.Split(out, "\n")
	return []string{
		"GOWORK=off",
		"CGO_ENABLED=0",
		"GOFLAGS=-modcacherw -trimpath", // with -trimpath, the build cache knows packages by module, not by folder
		"GOMODCACHE=" + cache,
		"GOPROXY=file://" + filepath.ToSlash(proxy) + ",file://" + filepath.ToSlash(theirs[0]) + "/cache/download," + theirs[1],
		"GONOSUMDB=" + root,
	}, nil
}
