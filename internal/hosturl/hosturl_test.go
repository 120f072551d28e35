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

func TestPlain(t *testing.T) {
	for _, host := range []string{"", "localhost", "localhost:1", "127.0.0.2", "127.0.0.1:1", "::1", "[::1]", "[::1]:1", "/run/x.sock"} {
		if Remote(host) || Plain([]string{host}, "") != nil {
			t.Errorf("%q is said to be another machine", host)
		}
	}
	got := Plain([]string{"localhost:1", "db:1", "10.0.0.1", "db:1", "[fe80::1]:1"}, "use TLS")
	if len(got) != 1 || !strings.Contains(got[0], "to db:1, 10.0.0.1, [fe80::1]:1 may be unencrypted") || !strings.HasSuffix(got[0], "; use TLS") {
		t.Errorf("%q", got)
	}
}

func TestTLSFiles(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ ca, cert, key, words string }{
		{ca: empty, words: "has no certificate in PEM"},
		{ca: empty + ".missing", words: "empty.pem.missing"},
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
