#!/bin/sh
# external key provider for tests (POSIX sh): its input must be exactly this.
IN=$(cat; printf .)
[ "$IN" = null. ] || [ "$IN" = '{"external_data":{"A":[12345678901234567000,1.5,1000,1e+21,1e-7,null,true],"B":{},"z":{"a":1,"b":"\u003c\u0026\u003e\u2028\u2029 é\"\\"},"é":""}}.' ] || { echo "not what it stored: $IN" >&2; exit 3; }
printf '%s\n' '{"magic":"OpenTofu-External-Key-Provider","version":1}'
cat <<'END'
{"keys":{"encryption_key":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=","decryption_key":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="},"meta":{"external_data":{"z":{"b":"<&>\u2028\u2029 \u00e9\"\\","a":1},"A":[12345678901234567890,1.50,1e3,1e21,0.0000001,null,true],"\u00e9":"","B":{}}}}
END
