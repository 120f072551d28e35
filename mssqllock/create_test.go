package mssqllock

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/session/sessiontest"
)

// TestCreateTogether: deployments begin on many machines at once.
func TestCreateTogether(t *testing.T) {
	t.Parallel()
	own := aServer(t)
	var all sync.WaitGroup
	for range 4 {
		s := must.Get(New(own.db, nil))
		all.Go(func() {
			for range 2 {
				if err := s.Create(context.WithoutCancel(t.Context())); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// TestSchema: what Schema tells is all that Create does. The view shows the claims to people.
func TestSchema(t *testing.T) {
	t.Parallel()
	own := aServer(t)
	s := must.Get(New(own.db, nil))
	for _, text := range s.Schema() {
		do(t, own.db, text)
	}
	if warnings, err := s.Check(t.Context()); err != nil || len(warnings) > 0 {
		t.Errorf("Check returned %q and %v", warnings, err)
	}
	const key = "Schlüssel 'ä' "
	c := exclusive(key)
	c.Owner = "ein Beßitzer"
	if g, err := s.Acquire(t.Context(), driver.Ask{Claim: c}); err != nil || !g.OK {
		t.Fatal(g, err)
	}
	other := exclusive(key)
	if g, err := s.Acquire(t.Context(), driver.Ask{Claim: other, Wait: true}); err != nil || g.OK {
		t.Fatal(g, err)
	}
	rows, err := own.db.QueryContext(t.Context(), "SELECT [key], owner, waiting, place, DATEDIFF(minute, since, until) FROM holdfast_claims ORDER BY waiting")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var seen int
	for ; rows.Next(); seen++ {
		var name string
		var owner *string
		var waiting, place, minutes int
		if err := rows.Scan(&name, &owner, &waiting, &place, &minutes); err != nil {
			t.Fatal(err)
		}
		if name != key || waiting != seen || place != 1 || seen == 0 && (owner == nil || *owner != c.Owner || minutes != 60) {
			t.Errorf("the view shows %q, %v, %d, %d, %d", name, owner, waiting, place, minutes)
		}
	}
	if rows.Err() != nil || seen != 2 {
		t.Errorf("the view has %d rows, %v", seen, rows.Err())
	}
}

// TestNotCreated: a caller hears at once what is wrong, and what to do. A login with the rights that
// the documentation names can use a table, and no more.
func TestNotCreated(t *testing.T) {
	t.Parallel()
	own := aServer(t)
	must.Get(0, must.Get(New(own.db, nil)).Create(t.Context()))
	do(t, own.db, "CREATE TABLE strange (name int)")
	at := must.Get(url.Parse(own.url))
	login := strings.ToLower(at.Query().Get("database")) + "_login"
	do(t, own.db, "CREATE LOGIN "+login+" WITH PASSWORD = 'Reads-2-much'")
	t.Cleanup(func() { own.db.ExecContext(context.Background(), "DROP LOGIN "+login) })
	do(t, own.db, "CREATE USER "+login+" FOR LOGIN "+login)
	do(t, own.db, "GRANT SELECT, INSERT, UPDATE, DELETE ON holdfast TO "+login)
	at.User = url.UserPassword(login, "Reads-2-much")
	least := database(t, at.String())
	must.Get(0, must.Get(New(own.db, &Options{Table: "seen"})).Create(t.Context()))

	for table, words := range map[string]string{
		"absent":       `there is no table absent as this version needs it: run "holdfast init" once with the URL of this store`,
		"nowhere.else": "there is no table nowhere.else",
		"strange":      "the table strange is not one of this package's",
	} {
		_, err := must.Get(New(own.db, &Options{Table: table})).Check(sessiontest.Bounded(t))
		if !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: Check returned %v, want an ErrInvalid with %q", table, err, words)
		}
	}
	err := must.Get(New(own.db, &Options{Table: "nowhere.else"})).Create(sessiontest.Bounded(t))
	if !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), "there is no schema, or database, in which the table nowhere.else could be") {
		t.Errorf("Create in a schema that is missing returned %v", err)
	}
	if _, err := must.Get(New(least, &Options{Table: "seen"})).Check(sessiontest.Bounded(t)); !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), "this user may not do that with the table seen") {
		t.Errorf("Check without rights returned %v", err)
	}
	if err := must.Get(New(least, &Options{Table: "mine"})).Create(sessiontest.Bounded(t)); !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), "to make it takes the right to create tables") {
		t.Errorf("Create without rights returned %v", err)
	}
	h := drivertest.Harness{
		Lacks: drivertest.Notify | drivertest.Watch,
		Open:  func(t testing.TB) driver.Store { return unprivileged{must.Get(New(least, nil))} },
	}
	for _, failure := range drivertest.Check(t, h, "together/all-methods", "token/over-release", "raise/later-grants", "batch/one-key") {
		t.Error(failure)
	}
}

// An unprivileged is a Store of a user who may not make its table, so that the contract leaves
// that out.
type unprivileged struct{ *Store }

// Create is none of driver.Creator.
func (unprivileged) Create() {}
