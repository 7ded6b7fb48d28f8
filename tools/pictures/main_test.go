package main

import (
	"encoding/xml"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

type group struct {
	Class    string  `xml:"class,attr"`
	Title    string  `xml:"title"`
	Groups   []group `xml:"g"`
	Texts    []text  `xml:"text"`
	Paths    []shape `xml:"path"`
	Polygons []shape `xml:"polygon"`
}

type text struct {
	X    float64 `xml:"x,attr"`
	Y    float64 `xml:"y,attr"`
	Font string  `xml:"font-family,attr"`
	Size float64 `xml:"font-size,attr"`
	Text string  `xml:",chardata"`
}

type shape struct {
	D      string `xml:"d,attr"`
	Points string `xml:"points,attr"`
}

type box struct{ left, top, right, bottom float64 }

// In fonts with a fifth more width than the assumed ones, texts stay within their boxes,
// and no arrow crosses one.
func TestTextsHaveRoom(t *testing.T) {
	dir := t.TempDir()
	if err := drawAll("../../templates/pictures", dir); err != nil {
		t.Fatal(err)
	}
	pictures, err := filepath.Glob(filepath.Join(dir, "*.svg"))
	if err != nil || len(pictures) != 4 {
		t.Fatal(pictures, err)
	}
	for _, name := range pictures {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var picture struct {
			Graph group `xml:"g"`
		}
		if err := xml.Unmarshal(data, &picture); err != nil {
			t.Fatal(err)
		}
		var arrows [][]point
		for _, g := range picture.Graph.Groups {
			for _, s := range append(g.Paths, g.Polygons...) {
				if g.Class == "edge" {
					arrows = append(arrows, s.points())
				}
			}
		}
		if len(arrows) < 6 {
			t.Fatalf("%s has %d parts of arrows", name, len(arrows))
		}
		for _, g := range picture.Graph.Groups {
			for _, said := range g.Texts {
				b := said.box()
				around := picture.Graph.Polygons[0]
				if g.Class != "edge" {
					around = g.Paths[0]
				}
				if outer := bounds(around.points()); b.left < outer.left || b.right > outer.right || b.top < outer.top || b.bottom > outer.bottom {
					t.Errorf("%s: %q is %v, and the box of %s %v", filepath.Base(name), said.Text, b, g.Title, outer)
				}
				for _, arrow := range arrows {
					for _, p := range arrow {
						if p.x > b.left && p.x < b.right && p.y > b.top && p.y < b.bottom {
							t.Fatalf("%s: an arrow crosses %q", filepath.Base(name), said.Text)
						}
					}
				}
			}
		}
	}
}

func (x text) box() box {
	advance := 0.5
	if strings.Contains(x.Font, "Courier") {
		advance = 0.6
	}
	half := float64(len([]rune(strings.TrimSpace(x.Text)))) * x.Size * advance * 1.2 / 2
	return box{x.X - half, x.Y - 0.75*x.Size, x.X + half, x.Y + 0.2*x.Size}
}

type point struct{ x, y float64 }

var number = regexp.MustCompile(`-?[0-9.]+`)

// points are those on the curves of a shape, which are of the third degree, or its corners
// and some between them.
func (s shape) points() (all []point) {
	var given []point
	numbers := number.FindAllString(s.D+s.Points, -1)
	for i := 0; i+1 < len(numbers); i += 2 {
		x, _ := strconv.ParseFloat(numbers[i], 64)
		y, _ := strconv.ParseFloat(numbers[i+1], 64)
		given = append(given, point{x, y})
	}
	step := 1
	if s.D != "" {
		step = 3
	}
	for i := 0; i+step < len(given); i += step {
		from, to := given[i], given[i+step]
		near, far := from, to
		if step == 3 {
			near, far = given[i+1], given[i+2]
		}
		for k := range 101 {
			f := float64(k) / 100
			along := func(a, b, c, d float64) float64 {
				return math.Pow(1-f, 3)*a + 3*math.Pow(1-f, 2)*f*b + 3*(1-f)*f*f*c + f*f*f*d
			}
			all = append(all, point{along(from.x, near.x, far.x, to.x), along(from.y, near.y, far.y, to.y)})
		}
	}
	return all
}

func bounds(points []point) box {
	b := box{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)}
	for _, p := range points {
		b = box{min(b.left, p.x), min(b.top, p.y), max(b.right, p.x), max(b.bottom, p.y)}
	}
	return b
}
