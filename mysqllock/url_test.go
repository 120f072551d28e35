package mysqllock

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/session/sessiontest"
	"github.com/holdfast-go/holdfast/internal/unlocking"
)

// TestURLsOfOthers opens URLs as services give them out and as other clients of the
// program want them, whatever they say of the statements of the application.
func TestURLsOfOthers(t *testing.T) {
	t.Parallel()
	for _, query := range []string{
		"charset=utf8mb4&parseTime=True&loc=Local",              // as GORM wants it
		"tls=preferred&interpolateParams=true&timeout=10s",      // as PlanetScale, but for the TLS of this server
		"ssl-mode=PREFERRED", "ssl-mode=disabled&compress=true", // as Aiven and DigitalOcean
		"clientFoundRows=true&multiStatements=true&columnsWithAlias=true&readTimeout=1ns&writeTimeout=1ns&maxAllowedPacket=16",
		"rejectReadOnly=false&autocommit=0&innodb_lock_wait_timeout=50&tx_isolation='SERIALIZABLE'&transaction_read_only=1&sql_mode='ANSI'&time_zone='%2B02:00'",
		"collation=latin1_swedish_ci&checkConnLiveness=false&allowNativePasswords=true&allowOldPasswords=false&allowAllFiles=true&timeTruncate=1s",
		"tls=0&allowFallbackToPlaintext=true&allowCleartextPasswords=false&connectionAttributes=program_name:web&max_execution_time=1&wait_timeout=1",
	} {
		for _, mode := range []string{"lease&table=others", "session&table=others_fence"} {
			at := server + "?mode=" + mode + "&" + query
			t.Log(at)
			s := servers.Insist(t, func(ctx context.Context) (driver.Store, error) { return driver.Open(ctx, at) })
			servers.Insist(t, func(ctx context.Context) (any, error) { return nil, s.(driver.Creator).Create(ctx) })
			s.Close()
			locks := servers.Insist(t, func(ctx context.Context) (*holdfast.Locker, error) { return holdfast.Open(ctx, at, nil) })
			for range 3 {
				lock, err := servers.Patient(sessiontest.Bounded(t), locks.Lock, query)
				if err == nil {
					err = unlocking.Release(lock.Unlock)
				}
				if err != nil {
					t.Errorf("%s: %v", at, err)
				}
			}
			locks.Close()
		}
	}
}

func TestWrongParameters(t *testing.T) {
	for query, words := range map[string]string{
		"ssl-mode=VERIFY_CA":             "ssl-mode is not one of VERIFY_IDENTITY, DISABLED, PREFERRED, REQUIRED",
		"tls=maybe":                      "tls is not one of true, false, preferred, skip-verify",
		"sslaccept=strict":               `unknown URL parameter "sslaccept" (known: table, wake, mode, conns, tls, ssl-mode,`,
		"strict=true":                    `unknown URL parameter "strict"`,
		"timeout=10":                     "timeout is not a duration",
		"ssl-mode=DISABLED&ssl-ca=/none": "go with tls=true",
		"ssl-mode=REQUIRED&ssl-ca=/none": "/none",
	} {
		_, err := driver.Open(t.Context(), "mysql://app:secret@db/x?"+query)
		if !errors.Is(err, driver.ErrURL) || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want an ErrURL with %q", query, err, words)
		}
	}
}

func TestURLEncrypts(t *testing.T) {
	for query, want := range map[string]string{
		"localhost/x": "false", "db/x": "true", "db/x?tls=TRUE": "true", "db/x?tls=0": "false",
		"db/x?ssl-mode=REQUIRED": "skip-verify", "db/x?ssl-mode=VERIFY_IDENTITY": "true", "db/x?ssl-mode=PREFERRED": "preferred",
	} {
		u, err := url.Parse("mysql://" + query)
		if err != nil {
			t.Fatal(err)
		}
		if s, err := parse(u); err != nil || s.config.TLSConfig != want {
			t.Errorf("%s: %+v, %v, want tls=%s", query, s, err, want)
		}
	}
}

// TestWarnsOfPlainPasswords takes 0.0.0.0 for another host, at which this one answers.
func TestWarnsOfPlainPasswords(t *testing.T) {
	t.Parallel()
	elsewhere := strings.Replace(server, "127.0.0.1", "0.0.0.0", 1)
	for _, mode := range []string{"&mode=lease&table=plain", "&mode=session&table=plain_fence"} {
		for at, warns := range map[string]bool{elsewhere + "?tls=false": true, elsewhere + "?tls=preferred": true, server + "?tls=false": false} {
			s := servers.Insist(t, func(ctx context.Context) (driver.Store, error) { return driver.Open(ctx, at+mode) })
			defer s.Close()
			if err := s.(driver.Creator).Create(t.Context()); err != nil {
				t.Fatal(err)
			}
			warnings, err := s.(driver.Checker).Check(t.Context())
			told := strings.Contains(strings.Join(warnings, " "), "may be unencrypted: ")
			if told != warns && elsewhere != server || err != nil {
				t.Errorf("%s of %s: warnings %q, %v", mode, at, warnings, err)
			}
		}
	}
}

// TestImitates reads what go-mysql-server 0.20 says to the settings of a connection.
func TestImitates(t *testing.T) {
	err := imitates(&mysql.MySQLError{Number: 1105, Message: "Variable 'innodb_lock_wait_timeout' is a GLOBAL variable and should be set with SET GLOBAL"})
	if !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), "go-mysql-server") {
		t.Errorf("got the error %v, want an ErrInvalid that names the server", err)
	}
	if other := (&mysql.MySQLError{Number: 1045, Message: "Access denied"}); imitates(other) != error(other) {
		t.Error("a wrong password is no imitation")
	}
}
