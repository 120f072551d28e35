package identifier

import (
	"strings"
	"testing"
)

func TestQuote(t *testing.T) {
	for name, want := range map[string]string{
		"fences":                   "`fences_2`",
		"App.Fences_2":             "`App`.`Fences_2_2`",
		strings.Repeat("f", 48):    "`" + strings.Repeat("f", 48) + "_2`",
		strings.Repeat("f", 49):    "",
		"":                         "",
		"2fences":                  "",
		"fen ces":                  "",
		"fences\n":                 "",
		"f`; DROP TABLE account--": "",
		"a.b.c":                    "",
		".fences":                  "",
		"app.":                     "",
		"fénces":                   "",
		"%s":                       "",
	} {
		if got, err := Quote(name, "_2", "`"); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %s, %v; want %s", name, got, err, want)
		}
	}
}
