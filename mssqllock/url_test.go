package mssqllock

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/microsoft/go-mssqldb/msdsn"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
)

func TestWrongParameters(t *testing.T) {
	t.Parallel()
	for at, words := range map[string]string{
		"sqlserver://app:secret@db":                                "want sqlserver://user:password@host:port?database=NAME",
		"sqlserver://app:secret@db/app":                            "want sqlserver://user:password@host:port?database=NAME",
		"sqlserver:///?database=app":                               "want sqlserver://user:password@host:port?database=NAME",
		"sqlserver://app:secret@db?database=app&mode=session":      "mode is not one of lease",
		"sqlserver://app:secret@db?database=app&encrypt=perhaps":   "encrypt",
		"sqlserver://app:secret@db?database=app&sslmode=require":   `unknown URL parameter "sslmode"`,
		"sqlserver://app:secret@db?database=app&Database=other":    "database",
		"sqlserver://app:secret@db?database=app&certificate=/none": "/none",
		"mssql://app:secret@db?database=app":                       "did you mean sqlserver://?",
	} {
		_, err := driver.Open(t.Context(), at)
		if !errors.Is(err, driver.ErrURL) || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want an ErrURL with %q", at, err, words)
		}
	}
}

func TestURLEncrypts(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]struct {
		encryption msdsn.Encryption
		unproved   bool
		warns      bool
	}{
		"localhost?database=x": {msdsn.EncryptionOff, true, false},
		"db?database=x":        {msdsn.EncryptionRequired, false, false},
		"db?database=x&Encrypt=true&TrustServerCertificate=true":                               {msdsn.EncryptionRequired, true, false},
		"db?database=x&encrypt=strict":                                                         {msdsn.EncryptionStrict, false, false},
		"db?database=x&encrypt=false":                                                          {msdsn.EncryptionOff, false, true},
		"db?database=x&encrypt=disable":                                                        {msdsn.EncryptionDisabled, false, true},
		"db/instance?database=x&App Name=web&ApplicationIntent=ReadOnly&connection timeout=30": {msdsn.EncryptionRequired, false, false},
	} {
		s := must.Get(parse(must.Get(url.Parse("sqlserver://app:secret@" + strings.ReplaceAll(at, " ", "%20")))))
		unproved := s.config.TLSConfig == nil || s.config.TLSConfig.InsecureSkipVerify
		if s.config.Encryption != want.encryption || unproved != (want.unproved || want.encryption == msdsn.EncryptionDisabled) || (s.warnings() != nil) != want.warns {
			t.Errorf("%s: encryption %v, unproved %t, warnings %q", at, s.config.Encryption, unproved, s.warnings())
		}
		if s.config.ReadOnlyIntent || s.config.Database != "x" {
			t.Errorf("%s: the database is %q, read-only %t", at, s.config.Database, s.config.ReadOnlyIntent)
		}
	}
}

// TestURLKeepsAlive: keepalive reaches the connections.
func TestURLKeepsAlive(t *testing.T) {
	t.Parallel()
	s := must.Get(parse(must.Get(url.Parse("sqlserver://app:secret@db?database=x&keepalive=7"))))
	c, _ := severable(s.config)
	if got := c.(*connector).Dialer.(mortal).dialer.KeepAlive; got != 7*time.Second {
		t.Errorf("keepalive is %v, want 7s", got)
	}
}
