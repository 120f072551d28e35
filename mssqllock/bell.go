package mssqllock

import (
	"cmp"
	"database/sql"
	"strings"

	"github.com/microsoft/go-mssqldb/msdsn"

	"github.com/holdfast-go/holdfast/internal/doorbell"
	"github.com/holdfast-go/holdfast/internal/identifier"
	"github.com/holdfast-go/holdfast/internal/sqlstore"
)

// survived follows a refused sp_getapplock or APPLOCK_TEST, with @got below 0. In Babelfish 4.3
// each refusal leaves an error behind, and the fifth on a connection ends the server. An error that
// is caught removes the others.
const survived = `IF @got < 0 AND SERVERPROPERTY('Babelfish') IS NOT NULL BEGIN TRY THROW 51000, N'removes the others', 1; END TRY BEGIN CATCH END CATCH;
`

// bellLocks are application locks of a session, with {table} for the table of the claims. The
// numbers are the values of [sqlstore.Heard].
var bellLocks = doorbell.Locks{
	Hold: sqlstore.SQLServerSettings + `DECLARE @got int;
EXEC @got = sp_getapplock @Resource = @p1, @LockMode = N'Exclusive', @LockOwner = N'Session', @LockTimeout = 1000;
` + survived + `SELECT CASE WHEN @got >= 0 THEN 1 ELSE 0 END`,
	Ring: sqlstore.SQLServerSettings + `DECLARE @got int;
EXEC @got = sp_releaseapplock @Resource = @p1, @LockOwner = N'Session';
IF @got >= 0 EXEC @got = sp_getapplock @Resource = @p1, @LockMode = N'Exclusive', @LockOwner = N'Session', @LockTimeout = 1000;
` + survived + `SELECT CASE WHEN @got >= 0 THEN 1 ELSE 0 END`,
	Held: sqlstore.SQLServerSettings + `SELECT CASE WHEN APPLOCK_MODE(N'public', @p1, N'Session') = N'Exclusive' THEN 1 ELSE 0 END`,
	Release: sqlstore.SQLServerSettings + `DECLARE @got int;
EXEC @got = sp_releaseapplock @Resource = @p1, @LockOwner = N'Session';
SELECT CASE WHEN @got >= 0 THEN 1 ELSE 0 END`,
	Wait: sqlstore.SQLServerSettings + `DECLARE @got int = 0, @heard int = 0;
IF coalesce((SELECT version FROM {table} WITH (ROWLOCK, FORCESEEK) WHERE name = @p1), 0) <> @p2 SET @heard = 2
ELSE IF APPLOCK_TEST(N'public', @p3, N'Exclusive', N'Session') = 1 SET @heard = 3
ELSE BEGIN
	EXEC @got = sp_getapplock @Resource = @p3, @LockMode = N'Exclusive', @LockOwner = N'Session', @LockTimeout = 1000;
	IF @got >= 0 BEGIN
		EXEC sp_releaseapplock @Resource = @p3, @LockOwner = N'Session';
		SET @heard = 1;
	END;
	SET @got = -1; -- for what APPLOCK_TEST has left
END;
` + survived + `SELECT @heard, 1`,
}

// newBell returns a bell on a server, for the claims in a table. The name of the table may be
// empty.
func newBell(config msdsn.Config, table string) (*doorbell.Bell, error) {
	quoted, err := identifier.Quote(cmp.Or(table, sqlstore.DefaultTable), "", "[")
	if err != nil {
		return nil, err
	}
	connector, sever := severable(config)
	locks := bellLocks
	locks.Wait = strings.Replace(locks.Wait, "{table}", quoted, 1)
	return doorbell.New(sql.OpenDB(connector), locks, sever), nil
}
