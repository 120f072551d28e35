package locks

import (
	"go/ast"
	"go/constant"
	"go/types"
	"regexp"
	"slices"
	"strings"
)

// A Statement is a database advisory lock in the constant SQL of a call.
type Statement struct {
	Function    string // the SQL function
	Does        Deed
	Try         bool // the row says whether the lock was acquired
	Transaction bool // the lock ends with the transaction
	Pool        bool // the call takes any connection of a pool
	NoRow       bool // the call does not return the row
}

var advisory = regexp.MustCompile(`(?i)\b(pg_(?:try_)?advisory_(?:xact_)?(?:lock|unlock)(?:_shared|_all)?|get_lock|release_lock|release_all_locks)\s*\(`)

// single matches a statement that does nothing but lock: other text may hold a whole
// transaction, or the definition of a function.
var single = regexp.MustCompile(`(?i)^\s*(?:select|do|perform)\s+[^;]*;?\s*$`)

// statement returns the advisory lock in the SQL of a call.
func statement(info *types.Info, call *ast.CallExpr, fn *types.Func) (s Statement, ok bool) {
	if !slices.ContainsFunc([]string{"Exec", "Query", "Get", "MustExec", "Raw"}, func(verb string) bool {
		return strings.HasPrefix(fn.Name(), verb)
	}) {
		return s, false
	}
	text := ""
	for _, arg := range call.Args {
		if text = constantText(info, arg); text != "" {
			break
		}
	}
	words := advisory.FindAllStringSubmatch(text, -1)
	if len(words) != 1 || !single.MatchString(text) {
		return s, false
	}
	s.Function = strings.ToLower(words[0][1])
	s.Does = Acquire
	if strings.Contains(s.Function, "unlock") || strings.HasPrefix(s.Function, "release") {
		s.Does = Release
	}
	s.Try = s.Does == Acquire && (strings.Contains(s.Function, "_try_") || s.Function == "get_lock")
	s.Transaction = strings.Contains(s.Function, "_xact_")
	s.Pool = isPool(info, call, fn)
	s.NoRow = strings.Contains(fn.Name(), "Exec") && fn.Name() != "QueryExec"
	return s, true
}

// pools are the types that run each statement on any of their connections.
var pools = []string{
	"database/sql.DB",
	pgx + "/pgxpool.Pool",
	pgx + ".ConnPool",
	sqlx + ".DB",
	bun + ".DB",
	"github.com/go-pg/pg.DB",
}

// isPool reports whether the method of a pool is called. The method may come from a struct around
// the pool, or from one inside.
func isPool(info *types.Info, call *ast.CallExpr, fn *types.Func) bool {
	pool := func(t types.Type) bool {
		if pointer, ok := types.Unalias(t).(*types.Pointer); ok {
			t = pointer.Elem()
		}
		return slices.Contains(pools, TypeName(t))
	}
	if recv := fn.Signature().Recv(); recv != nil && pool(recv.Type()) {
		return true
	}
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	return ok && pool(info.TypeOf(sel.X))
}

// constantText returns the text of a constant, or the constant format of fmt.Sprintf.
func constantText(info *types.Info, e ast.Expr) string {
	if value := info.Types[e].Value; value != nil && value.Kind() == constant.String {
		return constant.StringVal(value)
	}
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return ""
	}
	if fn := Callee(info, call); fn == nil || fn.FullName() != "fmt.Sprintf" {
		return ""
	}
	return constantText(info, call.Args[0])
}
