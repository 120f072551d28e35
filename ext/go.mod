module github.com/holdfast-go/holdfast/ext

go 1.25.0

require github.com/holdfast-go/holdfast v0.0.0

require github.com/moby/locker v1.0.1 // indirect

replace github.com/holdfast-go/holdfast => ../
