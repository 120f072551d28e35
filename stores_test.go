package holdfast_test

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocsStores compares the pages of the stores: all have the same headings, so
// that a reader finds the same thing at the same place, and each store has a page
// that names the package to import.
func TestDocsStores(t *testing.T) {
	want := []string{
		"Install", "With your own client", "By URL", "Rights",
		"What it promises", "What it costs", "Managed services",
	}
	heading := regexp.MustCompile(`(?m)^## (.+)$`)
	var pages []source
	for _, s := range documents(t) {
		if !strings.HasPrefix(s.path, "docs/stores/") {
			continue
		}
		pages = append(pages, s)
		var got []string
		for _, match := range heading.FindAllStringSubmatch(string(s.text), -1) {
			got = append(got, match[1])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s has the headings %q, want %q", s.path, got, want)
		}
	}
	stores := make(map[string]bool)
	for _, s := range goFiles(t) {
		if !s.test() && s.dir() != "driver" && bytes.Contains(s.text, []byte("driver.Register(")) {
			stores[s.dir()] = true
		}
	}
	for dir := range stores {
		imported := []byte("`" + module + "/" + dir + "`")
		got := []byte("go get " + module + "/" + dir)
		if !slices.ContainsFunc(pages, func(p source) bool { return bytes.Contains(p.text, imported) || bytes.Contains(p.text, got) }) {
			t.Errorf("no page in docs/stores says how to import %s", dir)
		}
	}
	if len(stores) != len(pages) {
		t.Errorf("%d stores have %d pages", len(stores), len(pages))
	}
}

// TestDocsRights compares the rights of a Redis user on the page with the package
// comment, from which redislock.TestPermissions has them.
func TestDocsRights(t *testing.T) {
	rights := func(path, end string) []string {
		for _, s := range files(t) {
			if s.path == path {
				_, list, _ := strings.Cut(string(s.text), "ACL SETUSER locks on >secret ")
				list, _, _ = strings.Cut(list, end)
				return strings.Fields(strings.ReplaceAll(list, "\n//", "\n"))
			}
		}
		return nil
	}
	page, comment := rights("docs/stores/redis.md", "\n```"), rights("redislock/doc.go", "\n//\n")
	if len(comment) == 0 || !slices.Equal(page, comment) {
		t.Errorf("the page has the rights %q, the package comment %q", page, comment)
	}
}
