// Command pictures renders each *.dot file in one folder as an SVG file in another.
//
//	pictures templates/pictures docs/pictures
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-graphviz"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: pictures FROM TO")
		os.Exit(2)
	}
	if err := drawAll(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func drawAll(from, to string) error {
	sources, err := filepath.Glob(filepath.Join(from, "*.dot"))
	if err != nil {
		return err
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	ctx := context.Background()
	g, err := graphviz.New(ctx)
	if err != nil {
		return err
	}
	defer g.Close()
	for _, source := range sources {
		picture, err := draw(ctx, g, source)
		if err != nil {
			return fmt.Errorf("%s: %w", source, err)
		}
		name := strings.TrimSuffix(filepath.Base(source), ".dot") + ".svg"
		if err := os.WriteFile(filepath.Join(to, name), picture, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// comment matches SVG comments, which contain the Graphviz version and node names.
var comment = regexp.MustCompile(`(?s)<!--.*?-->\n?`)

// room is the factor by which text is drawn smaller than in the layout, because readers may have a different font than
// Graphviz measured.
const room = 1.25

var size = regexp.MustCompile(`font-size="([0-9.]+)"`)

func draw(ctx context.Context, g *graphviz.Graphviz, source string) ([]byte, error) {
	text, err := os.ReadFile(source)
	if err != nil {
		return nil, err
	}
	graph, err := graphviz.ParseBytes(text)
	if err != nil {
		return nil, err
	}
	defer graph.Close()
	var out bytes.Buffer
	if err := g.Render(ctx, graph, graphviz.SVG, &out); err != nil {
		return nil, err
	}
	return size.ReplaceAllFunc(comment.ReplaceAll(out.Bytes(), nil), func(laidOut []byte) []byte {
		points, _ := strconv.ParseFloat(string(size.FindSubmatch(laidOut)[1]), 64)
		return fmt.Appendf(nil, `font-size="%.2f"`, points/room)
	}), nil
}
