package driver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestUnknownSchemes(t *testing.T) {
	for scheme, want := range map[string]string{
		"oracle":             `no store for scheme "oracle" (imported: `,
		"redis":              `the store for scheme "redis" is not imported: add import _ "github.com/holdfast-go/holdfast/redislock" (imported: `,
		"file":               `add import _ "github.com/holdfast-go/holdfast/filelock" (`,
		"postgre":            `no store for scheme "postgre"; did you mean postgres://? (`,
		"postgresql+asyncpg": `; did you mean postgresql://? (`,
		"pgsql+x":            `; did you mean postgres://? (`,
		"mariadb+connector":  `; did you mean mariadb://? (`,
		"mssql":              `; did you mean sqlserver://? (`,
		"https":              `; did you mean etcds://? (`,
		"valkeys":            `; did you mean rediss://? (`,
		"":                   "it has no scheme, such as file:///var/lib/locks has (known: ",
	} {
		if err := unknownScheme(scheme).Error(); !strings.Contains(err, want) || strings.Contains(err, "oracle") && !strings.Contains(err, "; not imported: azblob, dynamodb, etcd, etcds, file, ") {
			t.Errorf("%q: %s, want %q", scheme, err, want)
		}
	}
}

// The table of packages has every store of the repository, under its schemes.
func TestPackagesOfSchemes(t *testing.T) {
	stores := make(map[string]string)
	for _, pattern := range []string{"../*/open.go", "../*/open.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), "driver.Register(") {
				stores[strings.TrimPrefix(filepath.ToSlash(filepath.Dir(name)), "../")] = string(text)
			}
		}
	}
	for scheme, path := range packages {
		if !strings.Contains(stores[path], `"`+scheme+`"`) {
			t.Errorf("%s does not register %s", path, scheme)
		}
	}
	for path := range stores {
		found := false
		for _, known := range packages {
			found = found || known == path
		}
		if !found {
			t.Errorf("the schemes of %s are missing", path)
		}
	}
}
