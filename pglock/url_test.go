package pglock

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/session/sessiontest"
	"github.com/holdfast-go/holdfast/internal/unlocking"
)

// TestURLsOfOthers opens URLs as services give them out and as other clients of the
// program want them, whatever they say of the statements of the application.
func TestURLsOfOthers(t *testing.T) {
	t.Parallel()
	server := server.Database(t)
	for _, text := range []string{
		"CREATE ROLE app LOGIN PASSWORD '" + servers.Verifier("secret") + "'",
		"CREATE SCHEMA apart AUTHORIZATION app", "CREATE SCHEMA app AUTHORIZATION app",
	} {
		server.Must(text)
	}
	at, _, _ := strings.Cut(strings.Replace(server.URL(), "postgres:secret@", "app:secret@", 1), "?")
	for _, query := range []string{
		"",
		"sslmode=disable&application_name=web&connect_timeout=10", // as RDS
		"sslmode=prefer&channel_binding=prefer",                   // as Neon
		"sslmode=disable&pgbouncer=true&connect_timeout=15",       // as Supabase
		"pool_max_conns=2&pool_min_conns=1&pool_max_conn_lifetime=1h&pool_max_conn_idle_time=5m&pool_health_check_period=1m",
		"pool_max_conns=20&pool_min_conns=9&conns=1",
		"default_query_exec_mode=simple_protocol", "default_query_exec_mode=exec&statement_cache_capacity=0&description_cache_capacity=0",
		"statement_timeout=1&lock_timeout=1&idle_session_timeout=1&idle_in_transaction_session_timeout=1",
		"default_transaction_read_only=on&default_transaction_isolation=serializable&client_encoding=LATIN1&timezone=Asia/Tokyo&datestyle=German",
		"options=-c%20search_path%3Dapart%20-c%20statement_timeout%3D60s", "search_path=apart&role=app",
		"keepalives=1&keepalives_idle=30&keepalives_interval=10&keepalives_count=3&tcp_user_timeout=5000&gssencmode=disable&sslcompression=0&fallback_application_name=x",
		"user=app&password=secret&target_session_attrs=read-write&require_auth=scram-sha-256,none&sslsni=0",
	} {
		for _, mode := range []string{"lease", "session"} {
			if mode == "session" && strings.Contains(query, "conns=1") {
				continue
			}
			url := at + "?mode=" + mode + "&" + query
			t.Log(url)
			s := servers.Insist(t, func(ctx context.Context) (driver.Store, error) { return driver.Open(ctx, url) })
			servers.Insist(t, func(ctx context.Context) (any, error) { return nil, s.(driver.Creator).Create(ctx) })
			servers.Insist(t, func(ctx context.Context) ([]string, error) { return s.(driver.Checker).Check(ctx) })
			locks := must.Get(holdfast.New(s, nil))
			for range 3 {
				lock, err := servers.Patient(sessiontest.Bounded(t), locks.Lock, "key")
				if err == nil {
					err = unlocking.Release(lock.Unlock)
				}
				if err != nil {
					t.Errorf("%s: %v", url, err)
				}
			}
			locks.Close()
		}
	}
	if n := server.Must("SELECT count(*) FROM pg_tables WHERE schemaname IN ('app', 'apart') AND tablename = 'holdfast'"); strings.TrimSpace(n) != "2" {
		t.Errorf("%s tables: search_path has no effect", n)
	}
}

func TestWrongParameters(t *testing.T) {
	for query, words := range map[string]string{
		"schema=public":           `unknown URL parameter "schema" (known: mode, table, conns, listen, host, port, dbname,`,
		"sslmode=no":              "sslmode is invalid",
		"ssl=no":                  "URL parameter ssl is not one of",
		"gssencmode=require":      "URL parameter gssencmode is not one of prefer, disable",
		"pool_max_conns=many":     "cannot parse pool_max_conns",
		"pool_max_conns=0":        "pool_max_conns too small",
		"sslrootcert=/none":       "/none",
		"target_session_attrs=ro": "target_session_attrs",
		"synchronous_standby=x":   `unknown URL parameter "synchronous_standby"`,
		"sslpassword=secret&sslmode=require&sslcert=/none&sslkey=/none": "may show the sslpassword",
	} {
		_, err := driver.Open(t.Context(), "postgres://app:secret@db/x?"+query)
		if !errors.Is(err, driver.ErrURL) || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "secret@") || strings.Contains(err.Error(), "parse `") {
			t.Errorf("%s: %v, want an ErrURL with %q", query, err, words)
		}
	}
}

// Services without a certificate that anybody knows say ssl=true.
func TestSSL(t *testing.T) {
	for query, want := range map[string]bool{"": true, "?ssl=true": false, "?ssl=true&sslmode=verify-full": true, "?sslmode=require": false} {
		config, _ := mustParse(t, "postgres://app@db/x"+query)
		if config.TLSConfig == nil || proves(config) != want {
			t.Errorf("%s: the server proves its name: %t, want %t", query, proves(config), want)
		}
	}
}

// A service whose certificate nobody has signed, as those of Heroku, is refused with an
// error that says what would help.
func TestUnproven(t *testing.T) {
	keys := servers.StartRedisTLS(t).TLS
	pair, err := tls.LoadX509KeyPair(keys.Cert, keys.Key)
	if err != nil {
		t.Fatal(err)
	}
	addr := servers.StartStranger(t, func(conn net.Conn) {
		if _, err := conn.Read(make([]byte, 64)); err != nil {
			return
		}
		if _, err := conn.Write([]byte("S")); err == nil { // Yes, TLS.
			_ = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{pair}}).Handshake()
		}
	})
	for _, mode := range []string{"lease", "session"} {
		err := sessiontest.Refused(t, "postgres://app:secret@"+addr+"/x?sslmode=verify-full&mode="+mode)
		if !strings.Contains(err.Error(), "sslmode=require trusts any certificate") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", mode, err)
		}
	}
}

// A + in a parameter is no space, to libpq and pgx.
func TestPlus(t *testing.T) {
	config, _ := mustParse(t, "postgres://localhost/db?user=u&password=a+b%20c&application_name=x+y%20z")
	if config.Password != "a+b c" || config.RuntimeParams["application_name"] != "x+y z" {
		t.Errorf("password %q, application_name %q", config.Password, config.RuntimeParams["application_name"])
	}
}

// TestWarnsOfPlainPasswords takes 0.0.0.0 for another host, at which this one answers.
func TestWarnsOfPlainPasswords(t *testing.T) {
	server := server.Database(t)
	here := strings.TrimSuffix(server.URL(), "?sslmode=disable")
	elsewhere := strings.Replace(here, "127.0.0.1", "0.0.0.0", 1)
	for _, mode := range []string{"lease", "session"} {
		t.Run(mode, func(t *testing.T) {
			if mode == "session" {
				needsSessions(t)
			}
			for at, warns := range map[string]bool{elsewhere + "?sslmode=disable": true, elsewhere + "?sslmode=prefer": true, here + "?sslmode=disable": false} {
				s := servers.Insist(t, func(ctx context.Context) (driver.Store, error) { return driver.Open(ctx, at+"&mode="+mode) })
				defer s.Close()
				if err := s.(driver.Creator).Create(t.Context()); err != nil {
					t.Fatal(err)
				}
				warnings, err := s.(driver.Checker).Check(t.Context())
				told := strings.Contains(strings.Join(warnings, " "), "0.0.0.0 may be unencrypted")
				if told != warns || err != nil {
					t.Errorf("%s: warnings %q, %v", at, warnings, err)
				}
			}
		})
	}
}
