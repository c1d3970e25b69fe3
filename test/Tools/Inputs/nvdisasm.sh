#!/bin/sh
# What nvdisasm would print of a kernel, whatever file it is given.
cat << 'SASS'
.L_1:
        /*0000*/                   FFMA R1, R2, R3, R4 ;
        /*0010*/               @P0 BRA `(.L_1) ;
        /*0020*/                   EXIT ;
SASS
