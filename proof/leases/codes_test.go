package leases

import (
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
)

// A passing error is said in words, and left to be tried again.
func TestErrorsInWords(t *testing.T) {
	codes := map[*engine]map[string][]string{
		postgres: {
			"takes no writes":    {"25006"},
			"comes up":           {"57P01", "57P02", "57P03"},
			"no connection left": {"53300"},
			"is full":            {"53100"},
			"no memory left":     {"53200"},
		},
		mariadb: {
			"takes no writes":    {"1290", "1836", "1792"},
			"comes up":           {"1053", "1927", "1317"},
			"no connection left": {"1040", "1203", "1226"},
			"is full":            {"1114", "1021"},
			"no memory left":     {"1037", "1041"},
		},
	}
	each(t, func(t *testing.T, e *engine) {
		at := create(t, e.shared.URL())
		s := open(t, at)
		for words, some := range codes[e] {
			for _, code := range some {
				breakInserts(e, table(at), code)
				_, err := s.Acquire(t.Context(), exclusive(code, "a"))
				says(t, err, words)
				if errors.Is(err, driver.ErrInvalid) || errors.Is(err, driver.ErrLost) {
					t.Errorf("%v is not tried again", err)
				}
			}
		}
	})
}

// breakInserts lets the server answer with a code when a row is added.
func breakInserts(e *engine, table, code string) {
	if e == mariadb {
		e.shared.Must(fmt.Sprintf("CREATE OR REPLACE TRIGGER broken BEFORE INSERT ON %s FOR EACH ROW SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = %s, MESSAGE_TEXT = 'said by a trigger'", table, code))
		return
	}
	e.shared.Must(fmt.Sprintf(`CREATE OR REPLACE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'said by a trigger' USING ERRCODE = '%s'; END $$`, code))
	e.shared.Must(fmt.Sprintf("DROP TRIGGER IF EXISTS broken ON %s; CREATE TRIGGER broken BEFORE INSERT ON %[1]s EXECUTE FUNCTION broken()", table))
}
