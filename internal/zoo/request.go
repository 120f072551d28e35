package zoo

// Operations of the protocol.
const (
	opCreated         = 1 // answers of a Multi only
	opDelete          = 2
	opExists          = 3
	opGet             = 4
	opSet             = 5
	opChildren        = 8
	opSync            = 9
	opCheck           = 13
	opMulti           = 14
	opCreate          = 15 // the create that answers with a Stat
	opCreateContainer = 19
	opAuth            = 100
	opClose           = -11
	opError           = -1
)

// A Request is a request of a session. Make requests with the functions below.
type Request struct {
	op   int32
	path string // of the node
	body []byte
}

// A Kind is the lifetime of a node.
type Kind int32

const (
	Ephemeral Kind = 3 // ends with its session; the server adds a number to its name
	Member    Kind = 1 // ends with its session
	Container Kind = 4 // is removed by the servers some time after its last child
)

// An ACL permits operations on a node.
type ACL struct {
	Perms      int32
	Scheme, ID string
}

// Permissions of an ACL.
const (
	Read, Write, CreateChild, DeleteChild, Admin = 1, 2, 4, 8, 16
	All                                          = Read | Write | CreateChild | DeleteChild | Admin
)

// Create creates a node. [Call.Made] has the result.
func Create(path, data string, acl []ACL, kind Kind) Request {
	var w writer
	w.text(path)
	w.text(data)
	w.int(int32(len(acl)))
	for _, a := range acl {
		w.int(a.Perms)
		w.text(a.Scheme)
		w.text(a.ID)
	}
	w.int(int32(kind))
	if kind == Container {
		return Request{opCreateContainer, path, w.buf}
	}
	return Request{opCreate, path, w.buf}
}

// Delete removes a node.
func Delete(path string) Request { return versioned(opDelete, path) }

// Check fails if there is no such node. Use Check in a Multi.
func Check(path string) Request { return versioned(opCheck, path) }

func versioned(op int32, path string) Request {
	var w writer
	w.text(path)
	w.int(-1) // any version
	return Request{op, path, w.buf}
}

// Set replaces the data of a node with the given version.
func Set(path, data string, version int32) Request {
	var w writer
	w.text(path)
	w.text(data)
	w.int(version)
	return Request{opSet, path, w.buf}
}

// Exists requests the Stat of a node.
func Exists(path string) Request { return look(opExists, path, false) }

// Get requests the Data and the Stat of a node.
func Get(path string) Request { return look(opGet, path, false) }

// Watch is a Get after which the session reports the next change of the node. If there is
// no such node, nothing is watched.
func Watch(path string) Request { return look(opGet, path, true) }

// List requests the Children of a node.
func List(path string) Request { return look(opChildren, path, false) }

func look(op int32, path string, watch bool) Request {
	var w writer
	w.text(path)
	w.bool(watch)
	return Request{op, path, w.buf}
}

// Sync lets later requests see all changes made before.
func Sync(path string) Request {
	var w writer
	w.text(path)
	return Request{opSync, path, w.buf}
}

// CreateAll creates a node and the containers around the node, all of them or none.
func CreateAll(containers []string, path, data string, acl []ACL, kind Kind) Request {
	var all []Request
	for _, above := range containers {
		all = append(all, Create(above, "", acl, Container))
	}
	r := Multi(append(all, Create(path, data, acl, kind))...)
	r.path = path
	return r
}

// Multi does all of the requests, or none if a request fails.
func Multi(requests ...Request) Request {
	var w writer
	for _, r := range requests {
		w.int(r.op)
		w.bool(false)
		w.int(-1)
		w.buf = append(w.buf, r.body...)
	}
	w.int(-1)
	w.bool(true)
	w.int(-1)
	return Request{op: opMulti, body: w.buf}
}
