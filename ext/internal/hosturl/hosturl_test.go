package hosturl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAddresses(t *testing.T) {
	for hosts, want := range map[string]string{
		"":                 "127.0.0.1:7",
		"a":                "a:7",
		"a:1,b":            "a:1 b:7",
		"[::1],[::2]:3,:4": "[::1]:7 [::2]:3 :4",
	} {
		got, err := Addresses(hosts, "7")
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("hosts %q are %q, %v; want %s", hosts, got, err, want)
		}
	}
	if got, err := Addresses("a,,b", "7"); err == nil || !strings.Contains(err.Error(), "one of them is empty") {
		t.Errorf("an empty host: %q, %v", got, err)
	}
}

func TestTLSFiles(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ ca, cert, key, words string }{
		{ca: empty, words: "has no certificate in PEM"},
		{ca: empty + ".missing", words: "no such file"},
		{cert: empty, words: "cert and key go together"},
		{key: empty, words: "cert and key go together"},
		{cert: empty, key: empty, words: "PEM"},
	} {
		if config, err := TLS(c.ca, c.cert, c.key, ""); config != nil || err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%+v: %v, %v", c, config, err)
		}
	}
	if config, err := TLS("", "", "", "name"); err != nil || config.ServerName != "name" || config.RootCAs != nil {
		t.Errorf("without files: %+v, %v", config, err)
	}
}
