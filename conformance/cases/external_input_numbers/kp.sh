#!/bin/sh
# external key provider for tests (POSIX sh): its input must be exactly this.
IN=$(cat; printf .)
[ "$IN" = null. ] || [ "$IN" = '{"external_data":{"ﬀ":"�\b\f\u0001","😀":[-0,-1e-7,0.000001,100000000000000000000,123456789012345680000,1e+21,-1.5e+300,5e-324,1]}}.' ] || { echo "not what it stored: $IN" >&2; exit 3; }
printf '%s\n' '{"magic":"OpenTofu-External-Key-Provider","version":1}'
cat <<'END'
{"keys":{"encryption_key":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=","decryption_key":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="},"meta":{"external_data":{"😀":[-0.0,-1.0e-7,0.000001,1e20,123456789012345678901,1E21,-1.5e300,5e-324,0.1e1],"ﬀ":"\ud800\b\f\u007f\u0001"}}}
END
