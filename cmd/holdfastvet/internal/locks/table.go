// Package locks knows the lock libraries: which functions acquire, release and extend a lock,
// and which run work under a lock. It also knows which functions begin and end a transaction of a
// database. The rules of package rules know no library.
//
// A new library is a new row of the table in table.go, with a stub package below
// rules/testdata/src.
package locks

import "time"

// A Deed is the effect of a call on a lock, or on a transaction.
type Deed int

// The deeds.
const (
	Acquire Deed = iota + 1
	Release
	Extend
	Run   // runs a function while the lock is held
	Token // reads the fencing token
	Begin
	Commit
	Rollback
	Transact // runs a function in a transaction, and commits
)

// A Place says where a call has its lock.
type Place int

// The places.
const (
	Receiver Place = iota // mutex.Lock()
	Result                // lock, err := client.Obtain(ctx, key, ttl, nil)
	Argument              // client.Release(lock)
	Cancel                // ctx, cancel, err := locker.WithContext(ctx, key); the call of cancel releases
	Database              // the session or the transaction of the statement
)

// A Function is a row of the table.
type Function struct {
	Name  string // as types.Func.FullName has it, without the major version
	Does  Deed
	Lock  Place
	TTL   int  // the index of the argument with the TTL, 0 for none
	Quick bool // the client bounds the time of a release, without a deadline of the context
	Lost  bool // the error of a release says that the lock was lost
}

// A Callback is a field of a struct that receives the work of a leader.
type Callback struct {
	Struct  string // the type of the struct, without the major version
	Started string // the field with the work
	Stopped string // the field with the function that is called after a loss
}

// Modules are the prefixes of the packages that make up the libraries. A library may break
// the rules for its users.
var Modules = []string{
	"github.com/holdfast-go/holdfast/internal",
	"github.com/go-redsync/redsync",
	"github.com/bsm/redislock",
	"github.com/redis/rueidis",
	"go.etcd.io/etcd",
	"github.com/coreos/etcd",
	"k8s.io/client-go/tools/leaderelection",
	"cirello.io/pglock",
}

// Wrapper is the name of packages that wrap a leader election, in many modules. Their functions
// run a function literal with a context while this process leads.
const Wrapper = "leaderelection"

// Callbacks are the structs that receive work.
var Callbacks = []Callback{
	{"k8s.io/client-go/tools/leaderelection.LeaderCallbacks", "OnStartedLeading", "OnStoppedLeading"},
}

const (
	holdfast  = "github.com/holdfast-go/holdfast"
	redsync   = "github.com/go-redsync/redsync"
	bsm       = "github.com/bsm/redislock"
	rueidis   = "github.com/redis/rueidis/rueidislock"
	etcd      = "go.etcd.io/etcd/client/concurrency"
	etcdOlder = "go.etcd.io/etcd/clientv3/concurrency"
	etcdOld   = "github.com/coreos/etcd/clientv3/concurrency"
	pglock    = "cirello.io/pglock"
	sqlx      = "github.com/jmoiron/sqlx"
	pgx       = "github.com/jackc/pgx"
	gorm      = "gorm.io/gorm"
	bun       = "github.com/uptrace/bun"
)

// Functions is the table of the libraries.
var Functions = []Function{
	{Name: "(*" + holdfast + ".Locker).Lock", Does: Acquire, Lock: Result},
	{Name: "(*" + holdfast + ".Locker).TryLock", Does: Acquire, Lock: Result},
	{Name: "(*" + holdfast + ".Locker).LockAll", Does: Acquire, Lock: Result},
	{Name: "(*" + holdfast + ".Lock).Unlock", Does: Release, Lost: true},
	{Name: "(*" + holdfast + ".Group).Unlock", Does: Release, Lost: true},
	{Name: "(*" + holdfast + ".Lock).Fence", Does: Token},
	{Name: "(*" + holdfast + ".Locker).Do", Does: Run},
	{Name: holdfast + "/elect.Run", Does: Run},
	{Name: "(" + holdfast + "/once.Runner).Do", Does: Run},
	{Name: "(" + holdfast + "/once.Runner).DoTx", Does: Run},
	{Name: "(" + holdfast + "/schedlock.Job).Run", Does: Run},
	{Name: "(" + holdfast + "/schedlock.Job).Func", Does: Run},
	{Name: "(" + holdfast + "/schedlock.Job).Loop", Does: Run},

	{Name: "(*" + redsync + ".Mutex).Lock", Does: Acquire},
	{Name: "(*" + redsync + ".Mutex).LockContext", Does: Acquire},
	{Name: "(*" + redsync + ".Mutex).TryLock", Does: Acquire},
	{Name: "(*" + redsync + ".Mutex).TryLockContext", Does: Acquire},
	{Name: "(*" + redsync + ".Mutex).Unlock", Does: Release, Quick: true, Lost: true},
	{Name: "(*" + redsync + ".Mutex).UnlockContext", Does: Release, Quick: true, Lost: true},
	{Name: "(*" + redsync + ".Mutex).Extend", Does: Extend},
	{Name: "(*" + redsync + ".Mutex).ExtendContext", Does: Extend},

	{Name: "(*" + bsm + ".Client).Obtain", Does: Acquire, Lock: Result, TTL: 2},
	{Name: "(*" + bsm + ".Client).ObtainMulti", Does: Acquire, Lock: Result, TTL: 2},
	{Name: bsm + ".Obtain", Does: Acquire, Lock: Result, TTL: 3},
	{Name: "(*" + bsm + ".Lock).Release", Does: Release, Quick: true, Lost: true},
	{Name: "(*" + bsm + ".Lock).Refresh", Does: Extend},
	{Name: "(*" + bsm + ".Lock).FenceToken", Does: Token},

	{Name: "(" + rueidis + ".Locker).WithContext", Does: Acquire, Lock: Cancel},
	{Name: "(" + rueidis + ".Locker).TryWithContext", Does: Acquire, Lock: Cancel},
	{Name: "(" + rueidis + ".Locker).ForceWithContext", Does: Acquire, Lock: Cancel},

	{Name: "(*" + etcd + ".Mutex).Lock", Does: Acquire},
	{Name: "(*" + etcd + ".Mutex).TryLock", Does: Acquire},
	{Name: "(*" + etcd + ".Mutex).Unlock", Does: Release},
	{Name: "(*" + etcd + ".Election).Campaign", Does: Acquire},
	{Name: "(*" + etcd + ".Election).Resign", Does: Release},
	{Name: "(*" + etcd + ".Election).Rev", Does: Token},

	{Name: "(*" + pglock + ".Client).Acquire", Does: Acquire, Lock: Result},
	{Name: "(*" + pglock + ".Client).AcquireContext", Does: Acquire, Lock: Result},
	{Name: "(*" + pglock + ".Client).Release", Does: Release, Lock: Argument, Lost: true},
	{Name: "(*" + pglock + ".Client).ReleaseContext", Does: Release, Lock: Argument, Lost: true},
	{Name: "(*" + pglock + ".Lock).Close", Does: Release, Lost: true},
	{Name: "(*" + pglock + ".Lock).RecordVersionNumber", Does: Token},
	{Name: "(*" + pglock + ".Client).Do", Does: Run},

	{Name: "(*database/sql.DB).Begin", Does: Begin, Lock: Result},
	{Name: "(*database/sql.DB).BeginTx", Does: Begin, Lock: Result},
	{Name: "(*database/sql.Conn).BeginTx", Does: Begin, Lock: Result},
	{Name: "(*database/sql.Tx).Commit", Does: Commit},
	{Name: "(*database/sql.Tx).Rollback", Does: Rollback},
	{Name: "(*" + sqlx + ".DB).Beginx", Does: Begin, Lock: Result},
	{Name: "(*" + sqlx + ".DB).BeginTxx", Does: Begin, Lock: Result},
	{Name: "(*" + sqlx + ".DB).MustBegin", Does: Begin, Lock: Result},
	{Name: "(*" + pgx + ".Conn).Begin", Does: Begin, Lock: Result},
	{Name: "(*" + pgx + ".Conn).BeginTx", Does: Begin, Lock: Result},
	{Name: "(*" + pgx + "/pgxpool.Pool).Begin", Does: Begin, Lock: Result},
	{Name: "(*" + pgx + "/pgxpool.Pool).BeginTx", Does: Begin, Lock: Result},
	{Name: "(*" + pgx + "/pgxpool.Conn).Begin", Does: Begin, Lock: Result},
	{Name: "(*" + pgx + "/pgxpool.Conn).BeginTx", Does: Begin, Lock: Result},
	{Name: "(" + pgx + ".Tx).Commit", Does: Commit},
	{Name: "(" + pgx + ".Tx).Rollback", Does: Rollback},
	{Name: pgx + ".BeginFunc", Does: Transact},
	{Name: pgx + ".BeginTxFunc", Does: Transact},
	{Name: "(*" + gorm + ".DB).Begin", Does: Begin, Lock: Result},
	{Name: "(*" + gorm + ".DB).Commit", Does: Commit},
	{Name: "(*" + gorm + ".DB).Rollback", Does: Rollback},
	{Name: "(*" + gorm + ".DB).Transaction", Does: Transact},
	{Name: "(*" + bun + ".DB).Begin", Does: Begin, Lock: Result},
	{Name: "(*" + bun + ".DB).BeginTx", Does: Begin, Lock: Result},
	{Name: "(" + bun + ".Tx).Commit", Does: Commit},
	{Name: "(" + bun + ".Tx).Rollback", Does: Rollback},
	{Name: "(*" + bun + ".DB).RunInTx", Does: Transact},
	{Name: "(" + holdfast + "/fence.SQL).Do", Does: Transact},
}

// aliases are former import paths.
var aliases = map[string]string{
	etcdOlder:                      etcd,
	etcdOld:                        etcd,
	"github.com/cirello-io/pglock": pglock,
}

// A Constructor makes a lock with a TTL.
type Constructor struct {
	Option  string        // the function that sets the TTL
	Default time.Duration // the TTL without the option
}

// Constructors are the functions whose options set the TTL.
var Constructors = map[string]Constructor{
	"(*" + redsync + ".Redsync).NewMutex": {redsync + ".WithExpiry", 8 * time.Second},
}

// Keys are the functions that receive the key of a lock, with the index of the argument.
var Keys = map[string]int{
	"(*" + holdfast + ".Locker).Lock":           1,
	"(*" + holdfast + ".Locker).TryLock":        1,
	"(*" + holdfast + ".Locker).Do":             1,
	"(*" + redsync + ".Redsync).NewMutex":       0,
	"(*" + bsm + ".Client).Obtain":              1,
	bsm + ".Obtain":                             2,
	"(" + rueidis + ".Locker).WithContext":      1,
	"(" + rueidis + ".Locker).TryWithContext":   1,
	"(" + rueidis + ".Locker).ForceWithContext": 1,
	etcd + ".NewMutex":                          1,
	etcd + ".NewElection":                       1,
	"(*" + pglock + ".Client).Acquire":          0,
	"(*" + pglock + ".Client).AcquireContext":   1,
	"(*" + pglock + ".Client).Do":               1,
}
