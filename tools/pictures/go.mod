// The program that draws the pictures of the documentation, in a module of its
// own. Graphviz is compiled to WebAssembly there, so that every machine draws
// the same.
module github.com/statecrypt/terraform-provider-statecrypt/tools/pictures

go 1.26.0

require github.com/goccy/go-graphviz v0.2.10

require (
	github.com/disintegration/imaging v1.6.2 // indirect
	github.com/flopp/go-findfont v0.1.0 // indirect
	github.com/fogleman/gg v1.3.0 // indirect
	github.com/golang/freetype v0.0.0-20170609003504-e2365dfdc4a0 // indirect
	github.com/tetratelabs/wazero v1.12.0 // indirect
	golang.org/x/image v0.21.0 // indirect
	golang.org/x/sys v0.44.0 // indirect
	golang.org/x/text v0.19.0 // indirect
)
