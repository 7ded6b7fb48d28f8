package sops

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"time"
)

// valueCipher decrypts single values. The format is defined in aes/cipher.go of the sops library.
type valueCipher struct {
	block cipher.Block
	usual cipher.AEAD // for initialization vectors of the length that sops writes
}

const usualIV = 32 // in bytes

func newValueCipher(dataKey []byte) (*valueCipher, error) {
	block, err := aes.NewCipher(dataKey)
	if err != nil {
		return nil, err
	}
	usual, err := cipher.NewGCMWithNonceSize(block, usualIV)
	return &valueCipher{block: block, usual: usual}, err
}

var errNoValue = errors.New("sops does not write such a value")

// open decrypts a value such as ENC[AES256_GCM,data:…,iv:…,tag:…,type:…]. An empty string, which sops does
// not encrypt, stays empty. Errors contain no part of the value.
func (c *valueCipher) open(sealed string, additional []byte) (any, error) {
	if sealed == "" {
		return "", nil
	}
	parts, kind, err := takeApart(sealed)
	if err != nil {
		return nil, err
	}
	data, iv, tag := parts[0], parts[1], parts[2]
	gcm := c.usual
	if len(iv) != usualIV {
		if gcm, err = cipher.NewGCMWithNonceSize(c.block, len(iv)); err != nil {
			return nil, errNoValue
		}
	}
	both := append(data, tag...)
	plain, err := gcm.Open(both[:0], iv, both, additional)
	if err != nil {
		return nil, err
	}
	return typed(plain, kind)
}

// takeApart returns the data, initialization vector and tag of an encrypted value, and its type. Like sops,
// it ignores text after the last bracket.
func takeApart(sealed string) (parts [3][]byte, kind string, err error) {
	rest, ok := strings.CutPrefix(sealed, "ENC[AES256_GCM,data:")
	end := strings.LastIndexByte(rest, ']')
	if !ok || end < 0 || strings.Contains(rest[:end], "\n") {
		return parts, "", errNoValue
	}
	rest = rest[:end]
	for i, next := range []string{",iv:", ",tag:", ",type:"} {
		var text string
		if text, rest, ok = strings.Cut(rest, next); !ok || text == "" {
			return parts, "", errNoValue
		}
		if parts[i], err = base64.StdEncoding.DecodeString(text); err != nil {
			return parts, "", errNoValue
		}
	}
	return parts, rest, nil
}

// typed converts plain to the type that the file specifies. The type itself is not authenticated. If an
// attacker changes it, the file's MAC does not match, unless the value has the same text in both types.
func typed(plain []byte, kind string) (value any, err error) {
	text := string(plain)
	switch kind {
	case "str":
		return text, nil
	case "int":
		value, err = strconv.Atoi(text)
	case "float":
		value, err = strconv.ParseFloat(text, 64)
	case "bool":
		value, err = strconv.ParseBool(text)
	case "time":
		var t time.Time
		err = t.UnmarshalText(plain)
		value = t
	case "comment":
		return comment(text), nil
	default: // includes "bytes", which sops never writes and cannot decrypt
		err = errNoValue
	}
	if err != nil {
		return nil, errNoValue // the parsers' errors repeat the text
	}
	return value, nil
}
