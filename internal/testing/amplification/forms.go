package amplification

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// form is a way in which an answer grows.
type form struct {
	Grammar
	answer func(file string) *answer
}

// forms are those of an answer's own format, and refusals in its place.
func (a answer) forms() []form {
	refusal := answer{status: http.StatusForbidden, header: http.Header{"Content-Type": {"application/json"}},
		body: []byte(`{"code":"no","message":"m","error":{"code":403,"message":"m","errors":[{"message":"m"}]},"errors":["m"]}`)}
	inXML := answer{status: http.StatusForbidden, header: http.Header{"Content-Type": {"application/xml"}},
		body: []byte(`<?xml version="1.0"?><Error><Code>No</Code><Message>m</Message></Error>`)}
	return slices.Concat(a.own(), refusal.own(), inXML.own())
}

func (a answer) own() (all []form) {
	grammars := []Grammar{longer(string(a.body))}
	switch text := strings.TrimSpace(string(a.body)); {
	case strings.HasPrefix(text, "{"):
		grammars = append(grammars, InJSON(text)...)
	case strings.HasPrefix(text, "<"):
		grammars = append(grammars, InXML(text)...)
	}
	for _, g := range grammars {
		all = append(all, form{g, func(file string) *answer { return &answer{a.status, a.header, []byte(file)} }})
	}
	return append(all, a.headers())
}

// headers has the answer's headers grow. They stand in the file one a line.
func (a answer) headers() form {
	g := Grammar{"headers", with(unlimited("length of names", "length of values"), Production{"headers", 4000}), func(n Counts) string {
		var b strings.Builder
		for i := range n["headers"] {
			fmt.Fprintf(&b, "X-%s%d: %s\n", word(n["length of names"]), i, word(n["length of values"]))
		}
		return b.String()
	}}
	return form{g, func(file string) *answer {
		header := a.header.Clone()
		for line := range strings.Lines(file) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			header[name] = []string{value}
		}
		return &answer{a.status, header, a.body}
	}}
}

// longer is for bytes of any format.
func longer(text string) Grammar {
	return Grammar{"bytes", unlimited("length"), func(n Counts) string { return text + word(n["length"]) }}
}

// InJSON has what is there grow, and what no reader knows beside it: in the first
// object, and in each of them.
func InJSON(text string) []Grammar {
	var value any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if d.Decode(&value) != nil {
		return nil
	}
	strange := with(unlimited("members", "length of names", "length of texts", "escapes", "digits"), Production{"depth", 9000})
	return []Grammar{
		{"JSON", unlimited("elements", "length of texts"), func(n Counts) string {
			return write(value, n["elements"], n["length of texts"], "", "")
		}},
		{"strange members", strange, func(n Counts) string { return write(value, 1, 0, strangers(n), "") }},
		{"strange members in each object", unlimited("members", "depth"), func(n Counts) string {
			return write(value, 1, 0, strangers(n), strangers(n))
		}},
	}
}

func strangers(n Counts) string {
	return join(n["members"], func(i int) string {
		return fmt.Sprintf(`"x%d%s":"%s"`, i, word(n["length of names"]), word(n["length of texts"]))
	}) + `,"y":"` + strings.Repeat(`\u0041`, n["escapes"]) + `","n":1` + strings.Repeat("0", n["digits"]) +
		`,"z":` + nested(n["depth"], `[{"a":`, "1", "}]")
}

// write writes JSON in which each list has its elements so many times, texts are
// longer, and objects have more members: this one, and those in it.
func write(value any, elements, longer int, here, below string) string {
	switch v := value.(type) {
	case map[string]any:
		var all []string
		for name, member := range v {
			key, _ := json.Marshal(name)
			all = append(all, string(key)+":"+write(member, elements, longer, below, below))
		}
		slices.Sort(all)
		if here != "" {
			all = append(all, here)
		}
		return "{" + strings.Join(all, ",") + "}"
	case []any:
		var all []string
		for _, element := range v {
			all = append(all, write(element, elements, longer, below, below))
		}
		if len(all) == 0 {
			return "[]"
		}
		return list(elements, same(strings.Join(all, ",")))
	case string:
		value = v + word(longer)
	}
	text, _ := json.Marshal(value)
	return string(text)
}

// InXML has the content of the first element grow, and what no reader knows in it.
func InXML(text string) []Grammar {
	end := strings.LastIndex(text, "</")
	name, _, _ := strings.Cut(strings.TrimPrefix(text[max(end, 0):], "</"), ">")
	begin := strings.Index(text, "<"+name)
	if end < 0 || begin < 0 {
		return nil
	}
	begin += strings.Index(text[begin:], ">") + 1
	inside := text[begin:end]
	around := func(content string) string { return text[:begin] + content + text[end:] }
	strange := with(unlimited("elements", "attributes", "length of names", "length of texts", "escapes", "comments"),
		Production{"depth", 9000})
	return []Grammar{
		{"XML", unlimited("content"), func(n Counts) string { return around(strings.Repeat(inside, n["content"])) }},
		{"strange elements", strange, func(n Counts) string {
			name := word(n["length of names"])
			var attributes strings.Builder
			for i := range n["attributes"] {
				fmt.Fprintf(&attributes, ` a%d="1"`, i)
			}
			one := "<" + name + ">" + word(n["length of texts"]) + "</" + name + ">"
			return around(inside + strings.Repeat(one, n["elements"]) + "<y" + attributes.String() + "/>" +
				"<e>" + strings.Repeat("&#65;", n["escapes"]) + "</e>" + strings.Repeat("<!---->", n["comments"]) +
				nested(n["depth"], "<d>", "", "</d>"))
		}},
	}
}
