package mysqllock

import (
	"context"
	"crypto/rand"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/sqlstore"
)

// A leaver is a client that renews a claim with Leave just before the claim is extended.
type leaver struct {
	sqlstore.Client
	leave func()
}

func (l *leaver) Exec(ctx context.Context, st sqlstore.Statement) (sqlstore.Result, error) {
	if strings.Contains(st.Text, "'$.held[*].id'") {
		l.leave()
	}
	return l.Client.Exec(ctx, st)
}

// A renewal under way does not prolong a claim whose last renewal has come first.
func TestExtendAfterLeave(t *testing.T) {
	db := sql.OpenDB(must.Get(mysql.NewConnector(config(t, server))))
	defer db.Close()
	table := "extend_after_leave"
	other := must.Get(New(db, &Options{Table: table}))
	defer other.Close()
	servers.Insist(t, func(ctx context.Context) (any, error) { return nil, other.Create(ctx) })
	claim := driver.Claim{Key: rand.Text(), ID: "id", Weight: 1, Limit: 2, TTL: time.Hour}
	neighbour := claim
	neighbour.ID = "neighbour"
	for _, c := range []driver.Claim{claim, neighbour} {
		if g, err := other.Acquire(t.Context(), driver.Ask{Claim: c}); err != nil || !g.OK {
			t.Fatal(g, err)
		}
	}
	shorter, left := claim, 0
	shorter.TTL = time.Minute
	leave := func() {
		left++
		if err := other.Renew(t.Context(), []driver.Renewal{{Claim: shorter, Leave: true}})[0]; err != nil {
			t.Error(err)
		}
	}
	s := must.Get(sqlstore.New(&leaver{sqlstore.MySQL.Client(db), leave}, sqlstore.MySQL, &sqlstore.Options{Table: table}))
	defer s.Close()
	if err := s.Renew(t.Context(), []driver.Renewal{{Claim: claim}})[0]; err != nil {
		t.Error(err)
	}
	holders, err := other.Holders(t.Context(), claim.Key)
	if err != nil || left != 1 || len(holders) != 2 || holders[0].Left > shorter.TTL {
		t.Errorf("%+v and %v after %d renewals with Leave, want an end within %v", holders, err, left, shorter.TTL)
	}
}
