package rules

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPage compares docs/vet.md with the rules: the page has a section for each, with the words,
// the examples and a public thread.
func TestPage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "vet.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for _, rule := range All {
		_, section, _ := strings.Cut(page, "\n## "+rule.Name+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		if section == "" {
			t.Errorf("docs/vet.md has no section %s", rule.Name)
			continue
		}
		_, manual, _ := strings.Cut(rule.Doc, "\n\n")
		words, examples, _ := strings.Cut(manual, "\n\nBad:\n\n")
		bad, good, ok := strings.Cut(examples, "\n\nGood:\n\n")
		if !ok {
			t.Errorf("the doc of rule %s has no bad and good example", rule.Name)
		}
		for _, want := range []string{words, fenced(bad), fenced(good)} {
			if !strings.Contains(section, want) {
				t.Errorf("section %s of docs/vet.md lacks this text of the rule:\n%s", rule.Name, want)
			}
		}
		row := regexp.MustCompile(`(?m)^\| \[` + rule.Name + `\]\(#` + rule.Name + `\)(, optional)? \|`).FindStringSubmatch(page)
		switch {
		case row == nil:
			t.Errorf("the table of docs/vet.md has no row for %s", rule.Name)
		case (row[1] != "") != slices.Contains(Optional, rule):
			t.Errorf("the table of docs/vet.md says %q: want whether the rule is optional", row[0])
		}
		if !strings.Contains(section, "https://github.com/") && !strings.Contains(section, "No public thread") {
			t.Errorf("section %s of docs/vet.md cites no public thread", rule.Name)
		}
	}
}

// fenced returns an example of a doc as the page has it.
func fenced(example string) string {
	return "```go\n" + regexp.MustCompile(`(?m)^\t`).ReplaceAllString(example, "") + "\n```"
}
