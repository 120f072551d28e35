package main

import (
	"cmp"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/holdfast-go/holdfast"

// The rooms are the packages for users and authors of stores, and the four large packages
// below internal. Small pieces that most packages use would hide the arrows between the rooms.
var (
	large  = []string{"internal/engine", "internal/book", "internal/sqlstore", "internal/session"}
	hidden = regexp.MustCompile(`(^|/)(internal|testdata)/|^(cmd|bench|proof|examples|deploy)/|^(bench|all)$`)
)

// room returns the name under which a folder is drawn, "" if it is not drawn.
func room(folder string) string {
	if hidden.MatchString(folder) && !slices.Contains(large, folder) {
		return ""
	}
	if folder == "." {
		return "holdfast"
	}
	return folder
}

// packages draws the imports among the rooms. A room without imports is left out.
func packages(root string) (*graph, error) {
	uses := make(map[[2]string]map[string]bool)
	below := make(map[string][]string) // the imports of a room
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(name))
		from := room(filepath.ToSlash(folder))
		if err != nil || from == "" {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			path, ours := strings.CutPrefix(path, module)
			if to := room(cmp.Or(strings.TrimPrefix(path, "/"), ".")); ours && to != "" {
				uses[[2]string{from, to}] = map[string]bool{"the package": true}
				below[from] = append(below[from], to)
			}
		}
		return nil
	})
	return newGraph("Packages", layers(below), uses), err
}

// layers puts every room above the rooms that it imports, and otherwise as low as possible.
func layers(below map[string][]string) []string {
	height := make(map[string]int)
	var measure func(room string) int
	measure = func(room string) int {
		if height[room] == 0 {
			height[room] = 1
			for _, next := range below[room] {
				height[room] = max(height[room], measure(next)+1)
			}
		}
		return height[room]
	}
	for room := range below {
		measure(room)
	}
	return slices.SortedFunc(maps.Keys(height), func(a, b string) int {
		return cmp.Or(cmp.Compare(height[b], height[a]), strings.Compare(a, b))
	})
}
