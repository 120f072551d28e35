package mssqllock

import (
	"encoding/pem"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/session/sessiontest"
)

// authorityVariable names a PEM file: the CA of the certificate of the tests' server.
const authorityVariable = "HOLDFAST_TEST_SQLSERVER_CA"

// encrypted returns the URL of a database with encryption, and further parameters.
func encrypted(t *testing.T, at string, params ...string) string {
	t.Helper()
	u := must.Get(url.Parse(at))
	query := u.Query()
	query.Set("encrypt", "true")
	query.Del("TrustServerCertificate")
	query.Del("certificate")
	for i := 0; i < len(params); i += 2 {
		query.Set(params[i], params[i+1])
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// TestTLS connects to a server that proves its name, and to no other.
func TestTLS(t *testing.T) {
	t.Parallel()
	own := aServer(t)
	s, err := driver.Open(sessiontest.Bounded(t), encrypted(t, own.url, "TrustServerCertificate", "true"))
	switch {
	case err != nil && strings.Contains(err.Error(), "does not support encryption"):
		t.Skipf("the server does not encrypt: %v", err)
	case err != nil:
		t.Fatal(err)
	}
	s.Close()
	stranger := httptest.NewTLSServer(nil)
	defer stranger.Close()
	foreign := filepath.Join(t.TempDir(), "foreign.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: stranger.Certificate().Raw})
	if err := os.WriteFile(foreign, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for what, at := range map[string]string{
		"without an authority":     encrypted(t, own.url),
		"with a foreign authority": encrypted(t, own.url, "certificate", foreign),
	} {
		if err := sessiontest.Refused(t, at); !strings.Contains(err.Error(), "certificate") {
			t.Errorf("%s: %v, want a refused certificate", what, err)
		}
	}

	authority := os.Getenv(authorityVariable)
	if authority == "" {
		t.Skipf("%s is not set: want the CA of the server's certificate", authorityVariable)
	}
	proved := encrypted(t, own.url, "certificate", authority)
	for _, wake := range []string{"&wake=true", "&wake=false"} {
		store := (&server{proved, own.db}).prepared(t, wake)
		if _, err := store.(driver.Checker).Check(sessiontest.Bounded(t)); err != nil {
			t.Errorf("%s: %v", wake, err)
		}
		hold(t, store, wake)
	}
	if err := sessiontest.Refused(t, encrypted(t, own.url, "certificate", authority, "hostNameInCertificate", "elsewhere.example")); !strings.Contains(err.Error(), "elsewhere.example") {
		t.Errorf("with a foreign name: %v", err)
	}
	if warnings := must.Get(parse(must.Get(url.Parse(proved)))).warnings(); warnings != nil {
		t.Errorf("a URL with encryption warns: %q", warnings)
	}
	var option string
	db := database(t, proved)
	servers.Until(t, "the server to list the connection", func() bool {
		return db.QueryRow("SELECT encrypt_option FROM sys.dm_exec_connections WHERE session_id = @@SPID").Scan(&option) == nil
	})
	if option != "TRUE" {
		t.Errorf("the server says that the connection is encrypted: %q", option)
	}
}
