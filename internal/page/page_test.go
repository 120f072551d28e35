package page

import (
	"regexp"
	"strings"
	"testing"
)

// A page stands alone, and its names break nothing in it.
func TestWrite(t *testing.T) {
	const evil = "</script><script>document.title = 'wrong'</script>"
	p := &Page{
		Program: "the <b>simulator", Title: "redis <b>", Verdict: "both at once <i>",
		Keys: []string{evil}, Workers: []string{evil}, Note: evil,
		Holds:      []Hold{{Who: evil, Token: "1", To: 1}},
		Faults:     []Fault{{Nemesis: evil}},
		Violations: []Violation{{Check: "exclusion", Text: evil}},
	}
	var out strings.Builder
	if err := p.Write(&out); err != nil {
		t.Fatal(err)
	}
	for _, never := range []string{"<b>", "document.title = 'wrong'<", "both at once <"} {
		if strings.Contains(out.String(), never) {
			t.Errorf("the page has %q as it is", never)
		}
	}
	for _, pattern := range []string{`(src|href)="`, `https?://`, `url\(`} {
		if found := regexp.MustCompile(pattern).FindString(out.String()); found != "" {
			t.Errorf("the page needs something else: %s", found)
		}
	}
}
